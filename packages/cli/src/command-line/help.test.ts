import { type Command } from "commander";
import { expect, test } from "vitest";
import { createProgram } from "./program.ts";

const columns = 80;

function commandsBelow(command: Command, name: string): [string, Command][] {
  return [
    [name, command],
    ...command.commands.flatMap((each) => commandsBelow(each, `${name} ${each.name()}`)),
  ];
}

test.each(commandsBelow(createProgram(), "spry"))(
  "%s --help fits into a terminal of 80 columns",
  (_name, command) => {
    let text = "";
    command.configureOutput({
      writeOut: (part) => (text += part),
      getOutHelpWidth: () => columns,
    });
    command.outputHelp();
    expect(text.split("\n").filter((line) => line.length > columns)).toEqual([]);
    expect(text).toContain("Usage:");
  },
);
