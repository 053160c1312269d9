import { realpathSync } from "node:fs";
import path from "node:path";

/**
 * The arguments with the container's absolute paths made real, by the directory where they are found
 * by prefixing. What neither image nor mounts have is left as it is.
 */
export function realArguments(argv: readonly string[], root: string): string[] {
  return archiving(argv, root) ?? argv.map((argument) => realArgument(argument, root));
}

function realArgument(argument: string, root: string): string {
  const whole = realPath(argument, root);
  if (whole !== undefined) return whole;
  const flag = /^(--?[A-Za-z0-9][\w.-]*=)(\/.*)$/s.exec(argument);
  return flag ? `${flag[1]}${realPath(flag[2] ?? "", root) ?? flag[2]}` : argument;
}

function realPath(text: string, root: string): string | undefined {
  if (!root || !text.startsWith("/") || text.length > 4096 || text.includes("\0")) return undefined;
  const normal = path.posix.normalize(text);
  if (normal === "/") return undefined;
  try {
    return realpathSync(path.join(root, normal));
  } catch {
    return undefined;
  }
}

/**
 * What `kubectl cp` runs to fetch something. It requires the names in the archive to be those that it asked for, so
 * tar is called with options that write them instead of the real ones.
 */
function archiving(argv: readonly string[], root: string): string[] | undefined {
  const [program, flags, output, wanted = "", ...others] = argv;
  if (program !== "tar" || flags !== "cf" || output !== "-" || others.length > 0) return undefined;
  const real = realPath(wanted, root);
  if (real === undefined || real.includes("\n") || wanted.includes("\n")) return undefined;
  const name = path.posix.normalize(wanted).replace(/^\/+|\/+$/g, "");
  const pattern = real.replace(/[[\]\\.*^$,]/g, "\\$&");
  const replacement = name.replace(/[\\&,]/g, "\\$&");
  // Names and hard links (r, h), but not where symbolic links lead to.
  const transform = `--transform=flags=rSh;s,^${pattern},${replacement},`;
  return ["tar", "--absolute-names", transform, "-cf", "-", real];
}
