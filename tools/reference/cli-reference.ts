/** docs/cli-reference.md, from the commands themselves. */
import { type Command, type Option } from "commander";
import { createProgram } from "../../packages/cli/src/command-line/program.ts";
import { code, generatedFrom, item, paragraph } from "./markdown.ts";

export function cliReference(): string {
  const program = createProgram();
  const commands = shownCommands(program).flatMap((command) =>
    command.commands.length > 0 ? command.commands : [command],
  );
  return `${[
    generatedFrom("the commands (packages/cli/src/command-line)"),
    "# Command reference",
    paragraph(
      "`spry COMMAND --help` prints the same. Commands that talk to a cluster or to a platform accept, before or after the command:",
    ),
    optionsOf(program).join("\n"),
    paragraph(
      "The exit code is 0 when a command did what it says, 1 when it did not (the reason and the way out are on standard error), " +
        "and that of the signal when it was interrupted. Results are on standard output, progress is on standard error. " +
        "Colours are used on terminals only; `NO_COLOR=1` switches them off. Spry has no telemetry: no command sends anything " +
        "about you or your Functions to anyone.",
    ),
    ...commands.map(describe),
  ].join("\n\n")}\n`;
}

const nameOf = (command: Command): string =>
  [command.parent?.parent ? command.parent.name() : "", command.name()].filter(Boolean).join(" ");

function describe(command: Command): string {
  const args = command.registeredArguments.map((argument) => {
    const shown = `${argument.name()}${argument.variadic ? "..." : ""}`;
    return argument.required ? `<${shown}>` : `[${shown}]`;
  });
  const usage = ["spry", nameOf(command), ...args].join(" ");
  const options = optionsOf(command);
  return [
    `## spry ${nameOf(command)}`,
    code(usage),
    paragraph(`${command.description()}.`.replace(/^./, (letter) => letter.toUpperCase())),
    ...(options.length > 0 ? [options.join("\n")] : []),
  ].join("\n\n");
}

const optionsOf = (command: Command): string[] => command.options.filter(isShown).map(optionLine);
const isShown = ({ hidden }: Option): boolean => !hidden;

function optionLine(option: Option): string {
  const { defaultValue, defaultValueDescription, argChoices } = option;
  const isPlain = typeof defaultValue === "string" || typeof defaultValue === "number";
  const more = [
    argChoices ? `one of ${argChoices.join(", ")}` : "",
    isPlain ? `default ${defaultValueDescription ?? String(defaultValue)}` : "",
  ].filter(Boolean);
  return item(
    code(option.flags),
    `${option.description}${more.length > 0 ? ` (${more.join("; ")})` : ""}`,
  );
}

/** Not those that only programs use, nor help itself. */
const shownCommands = (program: Command): Command[] => {
  const visible = new Set(program.createHelp().visibleCommands(program));
  return program.commands.filter((each) => visible.has(each));
};
