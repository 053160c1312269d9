import { expect, test } from "vitest";
import { createProgram } from "./command-line/program.ts";
import { withShownCommands } from "./shown-command.ts";

test("in a checkout, messages name our commands as they are typed there", () => {
  const names = createProgram().commands.map((each) => each.name());
  // Only scripts call the one of completion.
  for (const name of names.filter((each) => each !== "__complete"))
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
