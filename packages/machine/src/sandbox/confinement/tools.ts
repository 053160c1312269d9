import { existsSync } from "node:fs";
import path from "node:path";

/** Programs of util-linux and the shell, by their absolute paths: what a Pod says of `PATH` is not heeded by them. */
export interface Tools {
  sh: string;
  unshare: string;
  mount: string;
  umount: string;
  pivotRoot: string;
  setpriv: string;
  nsenter: string;
}

const dirs = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

/** Throws, naming what is missing. */
export function findTools(): Tools {
  return {
    sh: "/bin/sh",
    unshare: findTool("unshare"),
    mount: findTool("mount"),
    umount: findTool("umount"),
    pivotRoot: findTool("pivot_root"),
    setpriv: findTool("setpriv"),
    nsenter: findTool("nsenter"),
  };
}

export function findTool(name: string): string {
  const file = dirs.map((dir) => path.join(dir, name)).find(existsSync);
  if (file === undefined) throw new Error(`${name} is missing: install util-linux`);
  return file;
}
