/** Several Functions in one `spry.yaml`: what its key `functions` says, each with what all of them have. */
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { isInside } from "../inside.ts";
import { UserError } from "../user-error.ts";
import {
  maxBytes,
  type ConfigFile,
  type FoundConfig,
  type MemberConfig,
  type ProjectConfig,
  readConfigFile,
} from "./config.ts";
import { configName } from "./schema.ts";
import { shownPath } from "./shown-path.ts";

/** The Functions of a file, in its order. */
export type Stack = ReadonlyMap<string, FoundConfig>;

/** In block style, and in a file that is one flow. */
const hasFunctions = /(?:^|[{,]\s*)["']?functions["']?\s*:/m;
const merged = ["env", "scale", "labels", "annotations"] as const;

/** What the `spry.yaml` of a directory says of several Functions; undefined where it is about one. */
export function readStack(directory: string): Stack | undefined {
  const place = path.join(directory, configName);
  // Most files are about one Function, and are read by `readConfig`.
  const found = statSync(place, { throwIfNoEntry: false });
  if (!found?.isFile() || found.size > maxBytes) return undefined;
  if (!hasFunctions.test(readFileSync(place, "utf8"))) return undefined;
  const file = readConfigFile(directory, shownPath(place));
  if (!file?.config.functions) return undefined;
  const { name, functions, ...common } = file.config;
  if (name !== undefined)
    throw new UserError(
      `${file.at(["name"])} is the name of one Function, and functions has several`,
      "remove it: the keys below functions are their names",
    );
  return new Map(
    Object.entries(functions).map(([each, entry]) => [
      each,
      memberOf(directory, file, { name: each, common, entry: entry ?? {} }),
    ]),
  );
}

/** One Function of a file, as of a directory of its own. Throws a UserError when the file has it no longer. */
export function readMember(directory: string, name: string): FoundConfig {
  const stack = readStack(directory);
  const found = stack?.get(name);
  if (found) return found;
  throw new UserError(
    `${shownPath(path.join(directory, configName))} does not have a Function ${name}`,
    stack ? `it has ${[...stack.keys()].join(", ")}` : "name it below functions",
  );
}

function memberOf(
  root: string,
  file: ConfigFile,
  { name, common, entry }: { name: string; common: ProjectConfig; entry: MemberConfig },
): FoundConfig {
  const { directory: given, ...own } = entry;
  const config: ProjectConfig = { ...common, ...own, name };
  for (const key of merged)
    if (common[key] && own[key]) Object.assign(config, { [key]: { ...common[key], ...own[key] } });
  return {
    directory: directoryOf(root, file, name, given),
    config,
    at: (key) => file.at(key in own ? ["functions", name, key] : [key]),
  };
}

function directoryOf(
  root: string,
  file: ConfigFile,
  name: string,
  given: string | undefined,
): string {
  const key = given === undefined ? ["functions", name] : ["functions", name, "directory"];
  const isDirectory = (place: string) =>
    statSync(place, { throwIfNoEntry: false })?.isDirectory() ?? false;
  const wanted = given ?? (isDirectory(path.join(root, name)) ? name : ".");
  const directory = path.resolve(root, wanted);
  if (!isDirectory(directory))
    throw new UserError(
      `${file.at(key)} is ${JSON.stringify(wanted)}, which is not a directory`,
      `create it, or correct the name; it is relative to ${configName}`,
    );
  if (!isInside(root, directory))
    throw new UserError(
      `${file.at(key)} is ${JSON.stringify(wanted)}, which is outside of the directory of ${configName}`,
      "only files of that directory become a Function's source: move them there",
    );
  const real = realpathSync(directory);
  if (real !== realpathSync(root) && existsSync(path.join(real, configName)))
    throw new UserError(
      `${file.at(key)} has a second ${configName}: ${shownPath(path.join(directory, configName))}`,
      `move its keys below functions.${name}, and delete it`,
    );
  return directory;
}
