/** What a word of a command may become. */
import { type Argument, type Command, Option } from "commander";
import { isFunctionKind } from "../command-line/function-name.ts";
import { suggestionsFor } from "../command-line/suggestions.ts";
import { directoriesAt } from "./directories.ts";
import { namesIn } from "./names-in.ts";
import { type Position } from "./position.ts";

export interface Candidate {
  word: string;
  description?: string;
}

/** In the order in which they are to be shown; only those that begin as what was typed. */
export async function candidatesAt(position: Position): Promise<Candidate[]> {
  const { current, lead } = position;
  const fitting = (await allAt(position)).filter(({ word }) => word.startsWith(current));
  return fitting.map(({ word, ...rest }) => ({ word: lead + word, ...rest }));
}

/** Whether the shell's own completion of files is what helps here. */
export const isFileAt = ({ parameter, current, takesOptions }: Position): boolean =>
  parameter !== undefined &&
  /^files?$/.test(placeholderOf(parameter)) &&
  (parameter instanceof Option || !takesOptions || !current.startsWith("-"));

async function allAt(position: Position): Promise<Candidate[]> {
  const { command, parameter, current, operands, takesOptions } = position;
  if (parameter instanceof Option) return valuesOf(parameter, position);
  if (takesOptions && current.startsWith("-")) return flagsOf(command);
  const inner = operands.length === 0 ? commandsOf(command) : [];
  if (!parameter) {
    // What is not known to this command may be anything.
    const isKnown = operands.length <= command.registeredArguments.length;
    return inner.length > 0 || !takesOptions || !isKnown ? inner : flagsOf(command);
  }
  return [...inner, ...(await valuesOf(parameter, position))];
}

const commandsOf = (command: Command): Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((each) => ({ word: each.name(), description: each.description() }));

/** Also those of the commands above, which are understood below. */
function flagsOf(command: Command): Candidate[] {
  const help = command.createHelp();
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)];
  const above: Option[] = [];
  for (let each = command.parent; each; each = each.parent)
    above.push(...each.createHelp().visibleOptions(each));
  const all = [...options, ...above].flatMap(({ long, short, description }) =>
    [long, short].filter((flag) => flag != null).map((word) => ({ word, description })),
  );
  return [...new Map(all.toReversed().map((each) => [each.word, each])).values()].toReversed();
}

async function valuesOf(parameter: Option | Argument, position: Position): Promise<Candidate[]> {
  const words = (names: readonly string[]) => names.map((word) => ({ word }));
  const fixed = await suggestionsFor(parameter);
  if (fixed.length > 0) return words(fixed);
  const { options, current } = position;
  if (parameter instanceof Option) {
    if (parameter.long === "--namespace") return words(await namesIn("namespaces", options));
  } else if (/^(?:names?|function)$/.test(parameter.name()))
    return words(await functionNames(position));
  return /^dirs?$/.test(placeholderOf(parameter)) ? words(directoriesAt(current)) : [];
}

/** `dir` of `--data-dir <dir>` and of `[dirs...]`. */
function placeholderOf(parameter: Option | Argument): string {
  if (!(parameter instanceof Option)) return parameter.name();
  return /[<[]([^\]>.]+)/.exec(parameter.flags)?.[1] ?? "";
}

/** Alone, or with the word for the kind if that was typed; none twice. */
async function functionNames({ options, current, operands }: Position): Promise<string[]> {
  const kind = current.slice(0, current.indexOf("/") + 1);
  if (kind !== "" && !isFunctionKind(kind.slice(0, -1))) return [];
  const given = new Set(operands.map((each) => each.slice(each.indexOf("/") + 1)));
  const names = await namesIn("functions", options);
  return names.filter((name) => !given.has(name)).map((name) => kind + name);
}
