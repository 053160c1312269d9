/** Where in the tree of commands the cursor of a shell is. */
import { type Argument, type Command, type Option } from "commander";
import { typedCommand } from "../command-line/other-names.ts";

export interface Position {
  command: Command;
  /** What is expected here; undefined where the command takes nothing more. */
  parameter: Option | Argument | undefined;
  /** Arguments of the command that precede the cursor. */
  operands: readonly string[];
  /** Values of options that precede it, by the options' names. */
  options: Readonly<Record<string, string>>;
  /** The word as far as it is typed, without `lead`. */
  current: string;
  /** What precedes the value in the same word: `--output=`. */
  lead: string;
  /** Whether an option may stand here. */
  takesOptions: boolean;
}

/** `words`: what was typed after the program's name; the last one, which may be empty, is to be completed. */
export function positionIn(program: Command, words: readonly string[]): Position {
  const all = typedCommand(withoutSplits(words), program);
  const typed = all.at(-1) ?? "";
  const walk = walkThrough(program, all.slice(0, -1));
  const { command, operands, options, takesOptions } = walk;
  const rest = { command, operands, options, takesOptions };
  if (walk.open) return { ...rest, parameter: walk.open, current: typed, lead: "" };
  const [, flag = "", value] = /^(--[^=]+)=([^]*)$/.exec(typed) ?? [];
  const option = takesOptions && value !== undefined ? optionNamed(command, flag) : undefined;
  if (option) {
    const lead = words.at(-1) === typed ? `${flag}=` : "";
    return { ...rest, parameter: option, current: value ?? "", lead };
  }
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  const argument = registeredArguments[operands.length] ?? (last?.variadic ? last : undefined);
  return { ...rest, parameter: argument, current: typed, lead: "" };
}

/** bash makes three words of `--output=json`. */
function withoutSplits(words: readonly string[]): string[] {
  const all: string[] = [];
  for (const [index, word] of words.entries()) {
    const before = all.at(-1) ?? "";
    const isSign = word === "=" && /^--[^=]+$/.test(before);
    const isValue = words[index - 1] === "=" && /^--[^=]+=$/.test(before);
    if (isSign || isValue) all.push(`${all.pop()}${word}`);
    else all.push(word);
  }
  return all;
}

/** What precedes the cursor. `open`: an option whose value is still to come. */
function walkThrough(program: Command, words: readonly string[]) {
  let command = program;
  let open: Option | undefined;
  let takesOptions = true;
  const operands: string[] = [];
  const options: Record<string, string> = {};
  for (const word of words) {
    if (open) {
      options[open.attributeName()] = word;
      open = undefined;
    } else if (takesOptions && word === "--") takesOptions = false;
    else if (takesOptions && /^-./.test(word)) {
      const [, flag = word, value] = /^(--[^=]+)=([^]*)$/.exec(word) ?? [];
      const option = optionNamed(command, flag);
      if (option && value !== undefined) options[option.attributeName()] = value;
      else if (option?.required) open = option;
    } else {
      const inner = operands.length === 0 ? commandNamed(command, word) : undefined;
      if (inner) command = inner;
      else operands.push(word);
    }
  }
  return { command, open, takesOptions, operands, options };
}

const commandNamed = (command: Command, name: string): Command | undefined =>
  command.commands.find((each) => each.name() === name || each.aliases().includes(name));

/** Options of commands above are understood below, too. */
function optionNamed(command: Command, flag: string): Option | undefined {
  for (let each: Command | null = command; each; each = each.parent) {
    const found = each.options.find(({ long, short }) => long === flag || short === flag);
    if (found) return found;
  }
  return undefined;
}
