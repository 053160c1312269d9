import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
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

test("a command that was started by its name is shown so", async () => {
  vi.stubEnv("SPRY_COMMAND", "spry");
  vi.resetModules();
  onTestFinished(() => void vi.unstubAllEnvs());
  const shown = await import("./shown-command.ts");
  expect(shown.withShownCommands("`spry get` lists them")).toBe("`spry get` lists them");
  expect(shown.spryCommandHere("dev", tmpdir())).toBe("spry dev");
  expect(shown.startCommand()).toBe("spry up");
  expect(process.env["SPRY_COMMAND"]).toBeUndefined();
});

test("from a PATH with node_modules/.bin, as README says", () => {
  const PATH = `${path.join(checkoutRoot() ?? "", "node_modules/.bin")}:${path.dirname(process.execPath)}:${process.env["PATH"]}`;
  const run = (npm_command: string) => {
    const env = { ...process.env, PATH, npm_command };
    return spawnSync("spry", ["--help"], { env, encoding: "utf8", cwd: tmpdir() }).stdout;
  };
  expect(run("")).toMatch(/^Start with:\n {2}spry init hello/m);
  expect(run("exec")).toMatch(/^Start with:\n {2}npx spry init hello/m);
});

test("in another package than the checkout, npx has to know where the command is", () => {
  const directory = mkdtempSync(path.join(tmpdir(), "spry shown "));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  writeFileSync(path.join(directory, "package.json"), "{}");
  const root = checkoutRoot() ?? "";
  expect(spryCommandHere("dev", directory)).toBe(`npx --prefix ${root} spry dev`);
  expect(spryCommandHere("dev", root)).toBe("npx spry dev");
});
