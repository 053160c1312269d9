/** Watches the `spry.yaml` of several Functions, and restarts those whose settings have changed. */
import { readFileSync, watch } from "node:fs";
import path from "node:path";
import { type Project } from "../project/project.ts";
import { configName } from "../project/schema.ts";
import { shownPath } from "../project/shown-path.ts";
import { readStack } from "../project/stack.ts";
import { UserError } from "../user-error.ts";
import { type DevFunction } from "./dev-function.ts";
import { type DevOutput } from "./output.ts";

/** A save can be several writes. */
const settleMs = 20;

/** `all`: the Functions of the file in the directory `base`. Returns what ends it. */
export function watchSettings(
  base: string,
  all: readonly DevFunction[],
  output: DevOutput,
): () => void {
  const file = path.join(base, configName);
  const known = new Set(namesIn(base));
  const texts = new Map<string, string>();
  const hasChanged = (name: string) => {
    const text = textOf(path.join(base, name));
    const before = texts.get(name);
    texts.set(name, text);
    return text !== before;
  };
  const look = () => {
    if (hasChanged(".env"))
      for (const each of all) if (each.runner.project?.root !== base) each.restart();
    if (!hasChanged(configName)) return;
    try {
      for (const name of namesIn(base)) {
        if (!known.has(name))
          output.note(`${shownPath(file)} now has ${name}, too: start spry dev again to run it`);
        known.add(name);
      }
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      output.problem(`${error.message}${error.wayOut ? `: ${error.wayOut}` : ""}`);
      output.note("the Functions keep the settings that they have until it is saved again");
      return;
    }
    for (const each of all) if (isDifferent(each)) each.restart();
  };
  for (const name of [configName, ".env"]) hasChanged(name);
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(base, (_event, name) => {
    if (name !== configName && name !== ".env") return;
    clearTimeout(timer);
    timer = setTimeout(look, settleMs);
  });
  watcher.on("error", () => watcher.close());
  return () => {
    clearTimeout(timer);
    watcher.close();
  };
}

const namesIn = (base: string): string[] => [...(readStack(base)?.keys() ?? [])];

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** Also of one that could not be opened before, or cannot be now. */
function isDifferent({ runner, target }: DevFunction): boolean {
  if (!runner.project) return true;
  try {
    return settingsOf(target.open()) !== settingsOf(runner.project);
  } catch {
    return true;
  }
}

const settingsOf = ({ root, runtime, handler, config }: Project): string =>
  JSON.stringify([root, runtime.name, handler, config]);
