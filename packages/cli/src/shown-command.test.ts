import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createProgram } from "./command-line/program.ts";
import { checkoutRoot } from "./programs.ts";
import { spryCommandHere, withShownCommands } from "./shown-command.ts";

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

test("in another package than the checkout, npx has to know where the command is", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "spry shown "));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(path.join(directory, "package.json"), "{}");
  const root = checkoutRoot() ?? "";
  expect(spryCommandHere("dev", directory)).toBe(`npx --prefix ${root} spry dev`);
  expect(spryCommandHere("dev", root)).toBe("npx spry dev");
});
