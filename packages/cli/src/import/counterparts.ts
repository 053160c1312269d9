/** What settings of other tools are in `spry.yaml`. */
import { type ProjectConfig } from "../project/config.ts";

export const resourcesRemark =
  "resources are not used: choose a profile in spry.yaml, such as `profile: M`";

export function runtimeLike(name: string, remarks: string[]): string {
  if (/^(?:node|typescript|javascript|springboot-node)/.test(name)) return "nodejs24";
  if (name.startsWith("python3.14")) return "python314";
  if (name.startsWith("python")) return "python312";
  remarks.push(`the runtime ${name || "(none)"} has no counterpart: nodejs24 was chosen`);
  return "nodejs24";
}

/** Without what is empty. */
export const clean = (config: ProjectConfig): ProjectConfig =>
  Object.fromEntries(
    Object.entries(config).filter(
      ([, value]) =>
        value !== undefined &&
        (typeof value !== "object" || Object.keys(value as object).length > 0),
    ),
  );
