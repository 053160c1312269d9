import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  certificateMountPaths,
  npmMountPath,
  npmrcMountPath,
  pipConfigMountPath,
} from "./base-root.ts";
import { bindMount, type OciMount } from "./oci-spec.ts";

export interface HostFilesOptions {
  /** npm's `npm-cli.js` on this machine. */
  npmCli?: string | undefined;
  /** An npmrc with this machine's way to its package registry; read each time, if it is there. */
  npmConfig?: string | undefined;
  /** The same for pip. */
  pipConfig?: string | undefined;
}

/** What containers with this machine's interpreters get of its npm and pip. */
export class HostFiles {
  readonly #options: HostFilesOptions;

  constructor(options: HostFilesOptions) {
    this.#options = options;
  }

  /** `dir` takes copies of the settings that every user of the Pod may read. */
  async mounts(dir: string): Promise<OciMount[]> {
    const { npmCli, npmConfig, pipConfig } = this.#options;
    const npm = npmCli && bindMount(path.dirname(path.dirname(npmCli)), npmMountPath, true);
    const of = await Promise.all([
      settings(npmConfig, path.join(dir, "npmrc"), npmrcMountPath, {
        key: "cafile",
        inside: certificateMountPaths.npm,
      }),
      settings(pipConfig, path.join(dir, "pip.conf"), pipConfigMountPath, {
        key: "cert",
        inside: certificateMountPaths.pip,
      }),
    ]);
    return [...(npm ? [npm] : []), ...of.flat()];
  }
}

/** Settings as they hold inside: a line `<key> = <file of certificates>` names the mounted file. */
async function settings(
  source: string | undefined,
  copy: string,
  mountPath: string,
  { key, inside }: { key: string; inside: string },
): Promise<OciMount[]> {
  const text = source && (await readFile(source, "utf8").catch(() => ""));
  if (!text) return [];
  const line = new RegExp(`^(${key}\\s*=\\s*)(\\S.*)$`, "m");
  const file = line.exec(text)?.[2];
  const isThere = file !== undefined && existsSync(file);
  await writeFile(copy, text.replace(line, isThere ? `$1${inside}` : ""), { mode: 0o644 });
  const mount = bindMount(copy, mountPath, true);
  return isThere ? [mount, bindMount(file, inside, true)] : [mount];
}
