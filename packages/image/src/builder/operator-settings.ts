import { existsSync, readFileSync } from "node:fs";

/**
 * Variables of an installer in this environment (`PIP_INDEX_URL`, `npm_config_registry`: `prefix` is `PIP_` or
 * `npm_config_`) that one of these files sets as well, to be left out of its run. pip and npm take their environment
 * before any file; but a namespace's Secret and the files of the source take precedence over what an operator sets
 * for all builds.
 */
export function settledByFiles(
  files: readonly (string | undefined)[],
  prefix: string,
  environment: NodeJS.ProcessEnv = process.env,
): Record<string, undefined> {
  const settings = new Set(files.flatMap(settingsIn));
  const settled = Object.keys(environment).filter(
    (name) =>
      name.toLowerCase().startsWith(prefix.toLowerCase()) &&
      settings.has(normalized(name.slice(prefix.length))),
  );
  return Object.fromEntries(settled.map((name) => [name, undefined]));
}

/** Of lines `index-url = …`, `registry=…`, `ca[] = …`; both file formats have one setting a line. */
function settingsIn(file: string | undefined): string[] {
  if (file === undefined || !existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").matchAll(/^[ \t]*([\w-]+)(?:\[\])?[ \t]*[=:]/gm);
  return [...lines].map(([, name = ""]) => normalized(name));
}

const normalized = (name: string): string => name.toLowerCase().replaceAll("-", "_");
