import { expect, test } from "vitest";
import { createProgram } from "./command-line/program.ts";
import { withShownCommands } from "./shown-command.ts";

test("in a checkout, messages name our commands as they are typed there", () => {
  for (const { name } of createProgram().commands.map((each) => ({ name: each.name() })))
    expect(withShownCommands(`\`spry ${name}\` helps`)).toBe(`\`npx spry ${name}\` helps`);
  for (const text of [
    "npx spry get",
    "Function spry failed",
    "/root/.spry get",
    "a spry thing",
    "the Function my-spry logs nothing",
  ])
    expect(withShownCommands(text)).toBe(text);
  expect(withShownCommands("(see spry --help); spry logs dice shows more")).toBe(
    "(see npx spry --help); npx spry logs dice shows more",
  );
});
