import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { type ClusterConfig } from "@spry/kube";
import { UserError } from "./user-error.ts";

/**
 * The kubeconfig of the platform that runs in this directory or the nearest one above it, as Git finds its repository; undefined
 * when there is no such file. The directory may not be trustworthy: a repository or an archive can contain a `.spry` of its own,
 * and completion runs `spry get` there without being asked to. So the file must be one that `spry up` has written for this user.
 */
export function localKubeconfig(directory: string): string | undefined {
  const file = path.join(directory, ".spry", "kubeconfig");
  if (existsSync(file)) {
    assertWrittenHere(file);
    return file;
  }
  for (let above = path.dirname(directory); ; above = path.dirname(above)) {
    const found = path.join(above, ".spry", "kubeconfig");
    // Directories above may be shared, such as /tmp: another user's file there is not this user's concern.
    if (existsSync(found) && isOwn(found)) {
      assertWrittenHere(found);
      return found;
    }
    if (above === path.dirname(above)) return undefined;
  }
}

const isOwn = (file: string): boolean => {
  const { uid } = statSync(file);
  return uid === (process.getuid?.() ?? uid);
};

/** Of a private file of a data directory: that `spry up` has written it for this user. */
export function assertWrittenHere(file: string): void {
  const isData = statSync(path.join(path.dirname(file), "pki"), { throwIfNoEntry: false });
  const { mode, uid } = statSync(file);
  const isPrivate = process.platform === "win32" || (mode & 0o077) === 0;
  if (!isData?.isDirectory()) throw distrust(file, "it is not in a data directory of Spry");
  if (uid !== (process.getuid?.() ?? uid)) throw distrust(file, "it belongs to another user");
  if (!isPrivate) throw distrust(file, "other users may read or change it");
}

/** `spry up` writes a server on this machine and certificates, but nothing that runs a program or sends a file elsewhere. */
export function assertLocal({ server, exec, tokenFile }: ClusterConfig, file: string): void {
  const { hostname } = new URL(server);
  if (exec) throw distrust(file, "it names a program to run");
  if (tokenFile !== undefined) throw distrust(file, "it sends the content of another file");
  if (!isLoopback(hostname)) throw distrust(file, `its server ${hostname} is not this machine`);
}

/** As `URL` writes hosts. */
export const isLoopback = (hostname: string): boolean =>
  /^(?:127(?:\.\d+){3}|localhost|\[::1\])$/.test(hostname);

const distrust = (file: string, why: string): UserError =>
  new UserError(
    `${file} is not used, because \`spry up\` has not written it like this: ${why}`,
    "name it with --kubeconfig if you trust it, or another one",
  );
