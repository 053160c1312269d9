/** What the operating system refuses, as a sentence and what to do about it. */
import { tmpdir } from "node:os";

/** See `UserError`. */
export interface Fault {
  message: string;
  wayOut?: string;
}

const causes: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOENT: "it does not exist",
  ENOTDIR: "a part of this path is not a directory",
  EISDIR: "it is a directory, not a file",
  ENOTEMPTY: "the directory is not empty",
  EEXIST: "it exists",
  ELOOP: "its symbolic links lead in a circle",
  ENAMETOOLONG: "the name is too long",
  ENOSPC: "no space is left on the device",
  EDQUOT: "the disk quota is used up",
  EMFILE: "this process has too many open files",
  ENFILE: "the machine has too many open files",
  EIO: "the device reports an error",
  ESTALE: "the network file system has lost it",
  EBUSY: "another program uses it",
};

/** Undefined for what is not a fault of the operating system. */
export function systemFault(error: unknown): Fault | undefined {
  const { code = "", syscall = "", path, address, port } = (error ?? {}) as Record<string, string>;
  const cause = causes[code];
  if (syscall === "uv_cwd")
    return { message: "the current directory does not exist", wayOut: "change to another one" };
  if (syscall === "listen") return listenFault(code, port ?? "", address);
  if (syscall === "watch" && /^(?:ENOSPC|EMFILE|ENFILE)$/.test(code)) return watchFault(code);
  if (cause === undefined || syscall === "") return undefined;
  if (path === undefined) return { message: `${syscall} failed: ${cause}` };
  const isTemporary = path.startsWith(`${tmpdir()}/`);
  return {
    message: `${path}: ${cause} (${syscall})`,
    ...(isTemporary && {
      wayOut: `temporary files are in ${tmpdir()}: set TMPDIR to a directory that can be written`,
    }),
  };
}

function listenFault(code: string, port: string, address: string | undefined): Fault | undefined {
  const place = address === undefined ? `port ${port}` : `port ${port} of ${address}`;
  if (code === "EACCES")
    return {
      message: `${place} may not be opened: ports below 1024 need more rights`,
      wayOut: "choose a port above 1023",
    };
  if (code === "EADDRINUSE")
    return { message: `${place} is in use`, wayOut: "choose another one; 0 takes a free one" };
  if (code === "EADDRNOTAVAIL") return { message: `this machine does not have ${place}` };
  return undefined;
}

function watchFault(code: string): Fault {
  const setting = code === "ENOSPC" ? "max_user_watches" : "max_user_instances";
  return {
    message: "no more files can be watched: this machine's limit is reached",
    wayOut: `raise it: \`sudo sysctl fs.inotify.${setting}=524288\`${code === "ENOSPC" ? "" : ", or the limit of open files: `ulimit -n`"}`,
  };
}
