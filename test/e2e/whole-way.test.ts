/** A user's whole way in a terminal of 80 columns: a new directory, edits, mistakes, and back to what served. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { hasTerminals, inTerminal, tooLong } from "../support/terminal.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-way-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

const handler = path.join(home, "dice/handler.ts");
const edit = (from: string, to: string) =>
  writeFileSync(handler, readFileSync(handler, "utf8").replace(from, to));
const mistake = 'throw new Error("the database is not configured, set DATABASE_URL first");';

/** Runs a command to its end. No line may be longer than the terminal, except of logs: those are the Function's. */
async function typed(line: string): Promise<{ code: number; output: string }> {
  const command = inTerminal(line.split(" "), {
    cwd: home,
    env: { KUBECONFIG: platform.kubeconfig },
  });
  const code = await command.ended;
  const output = command.output();
  if (!line.startsWith("logs")) expect({ line, long: tooLong(output) }).toEqual({ line, long: [] });
  return { code, output };
}

describe.skipIf(!hasTerminals)("in a terminal of 80 columns", () => {
  const withoutPlatform: [string, RegExp][] = [
    ["get", /no platform was started in this directory.*change to the directory/s],
    ["logs dice --kubeconfig nope", /the kubeconfig nope does not exist/],
    ["run -f nope.yaml", /the file nope\.yaml does not exist/],
    ["restore nope.tar", /nope\.tar does not exist.*spry backup/s],
    ["import nope.yaml", /nope\.yaml does not exist.*func\.yaml/s],
    ["deploy broken", /broken\/package\.json is not valid JSON.*line 1.*a comma too many/s],
    ["deploy empty", /empty has no handler for the runtime.*spry init DIR/s],
    ["dev empty --port 70000", /70000 is not a valid port/],
    ["up --allow-loopback localhost", /"localhost" is not a host and a port.*localhost:5001/s],
    [
      "logs",
      /missing required argument 'name'\n {7}use npx spry logs <name>; see npx spry logs --help\n/,
    ],
    ["build empty", /required option '-t, --tag <image>' not specified/],
    ["expose a b c d", /too many arguments/],
    ["explain spec.nope", /the field spec\.nope does not exist\n +fields here: /],
    ["doctor", /Node\.js 24/],
  ];
  test.each(withoutPlatform)("without a platform: spry %s", async (line, words) => {
    for (const name of ["empty", "broken"]) mkdirSync(path.join(home, name), { recursive: true });
    writeFileSync(path.join(home, "broken/package.json"), '{ "type": "module", }');
    const command = inTerminal(line.split(" "), { cwd: home, env: { HOME: home } });
    await command.ended;
    expect(command.output()).toMatch(words);
    // Paths are as long as they are.
    const long = tooLong(command.output()).filter((each) => !each.includes(home));
    expect(long).toEqual([]);
  });

  test("init, and dev while the code is broken and repaired", async () => {
    expect(await typed("init dice")).toMatchObject({ code: 0 });
    // Whatever Node.js the user has otherwise.
    const bin = path.join(home, "bin");
    mkdirSync(bin);
    writeFileSync(path.join(bin, "node"), "#!/bin/sh\nexit 9\n", { mode: 0o755 });
    const env = { PATH: `${bin}:${process.env["PATH"]}` };
    const tests = inTerminal(["test", "dice"], { cwd: home, env });
    expect(await tests.ended).toBe(0);
    expect(tests.output()).toMatch(/pass 1\n/);
    const dev = inTerminal(["dev", "dice", "--port", "0"], {
      cwd: home,
      env: { KUBECONFIG: platform.kubeconfig },
    });
    await dev.shows(/ready after \d+ ms at http:\S+\n[^]*keys: /);
    edit("world", "moon");
    await dev.shows(/new code answers/);
    edit("Response.json(", "Response.json(;");
    await dev.shows(/✘ handler\.ts:5: SyntaxError: Expression expected/);
    edit("Response.json(;", "Response.json(");
    await dev.shows(/✘[^]*new code answers/);
    writeFileSync(handler, `import "left-pad-nope";\n${readFileSync(handler, "utf8")}`);
    await dev.shows(/Cannot find package[^]*npm install left-pad-nope adds it to package\.json/);
    edit('import "left-pad-nope";\n', "");
    await dev.shows(/npm install[^]*new code answers/);
    dev.type("q");
    expect(await dev.ended).toBe(0);
    // The runtime's own lines are as they are.
    const isRuntimes = (line: string) => /^(?:loading |Error )/.test(line);
    expect(tooLong(dev.output()).filter((line) => !isRuntimes(line))).toEqual([]);
  });

  test("deploy; a mistake is named with what still serves and what to do", async () => {
    const first = await typed("deploy dice");
    expect(first).toMatchObject({
      code: 0,
      output: expect.stringMatching(
        /version 1 serves\nhttp:\/\/dice\.default[^]*\nNext:\n\n {2}npx spry logs -f dice +# what/,
      ),
    });
    expect((await typed("logs dice")).output).toMatch(/^dice has written nothing yet; `npx spry/);
    const again = await typed("deploy dice");
    expect(again.output).toMatch(/files, unchanged\n[^]*\nversion 1 serves, as before\nhttp/);
    expect(again.output).not.toContain("Next:");
    edit("Response.json(", "Response.json(;");
    expect(await typed("deploy dice")).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^error: handler\.ts:5:\d+: .*nothing was deployed/s),
    });
    edit("Response.json(;", "Response.json(");
    writeFileSync(handler, `${readFileSync(handler, "utf8")}${mistake}\n`);
    const failed = await typed("deploy dice");
    expect(failed.code).toBe(1);
    expect(failed.output).toMatch(/version 2 of dice failed: handler\.ts:8: Error: the database/);
    expect(failed.output.replaceAll(/\s+/g, " ")).toContain("version 1 still serves");
    for (const wayOut of ["logs", "describe", "rollback"])
      expect(failed.output).toContain(`npx spry ${wayOut} dice`);
    expect(await platform.call("dice.default")).toMatchObject({ status: 200 });
  });

  test("an error that the handler prints is in its own files, in the log of a Function", async () => {
    const code = readFileSync(handler, "utf8");
    const prints = 'console.error("seen:", new Error("no database"));';
    edit(`${mistake}\n`, "");
    edit("return Response", `${prints} return Response`);
    const deployed = await typed("deploy dice");
    expect(deployed.output).toMatch(
      /✔ build: [^\n]+\n {2}… running: [^\n]+\n {2}✔ running: [^\n]+\nversion 3 serves; `npx spry rollback dice` returns to version 1\n/,
    );
    expect((await typed("invoke dice ?name=you")).output).toBe('{"message":"Hello, you!"}\n');
    // While the instance of the version before ends, each line has its instance's name.
    const logged = (await typed("logs dice")).output.replaceAll(/^\[dice-\S+\] /gm, "");
    expect(logged).toBe("seen: Error: no database\n    at Object.fetch (handler.ts:5:28)\n");
    // What the rows below are about.
    writeFileSync(handler, code);
    expect((await typed("deploy dice")).output).toMatch(/version 4 of dice failed/);
  });

  test("describe, logs, get and history say what has happened", async () => {
    const described = await typed("describe dice");
    expect(described).toMatchObject({ code: 0 });
    expect(described.output).toMatch(/Status: +Failed, version 3 serves/);
    expect(described.output).toMatch(/Problem:\n {2}version 4 of dice failed: handler\.ts:8/);
    expect((await typed("logs dice")).output).toContain("set DATABASE_URL first");
    expect((await typed("get")).output).toMatch(/NAME .*\ndice +Failed, version 3 serves /);
    expect((await typed("get dice")).output.match(/the database is not configured/g)).toHaveLength(
      3,
    );
    expect((await typed("history dice")).output).toMatch(/4 .* not ready\n3 .* 100 %/);
  });

  test("a package that does not exist: the build's own output is what logs --build prints", async () => {
    edit(`${mistake}\n`, "");
    const manifest = path.join(home, "dice/package.json");
    const content = JSON.parse(readFileSync(manifest, "utf8")) as object;
    const dependencies = { "spry-test-nope-package": "1" };
    writeFileSync(manifest, JSON.stringify({ ...content, dependencies }));
    const failed = await typed("deploy dice");
    expect(failed.code).toBe(1);
    expect(failed.output).toMatch(/error: dice failed: .*npm install ended/s);
    expect(failed.output).toContain("npx spry logs --build dice");
    expect((await typed("logs --build dice")).output).toContain("npm error code E404");
    expect(await typed("rollback dice 1")).toMatchObject({ code: 0 });
    expect(await platform.call("dice.default")).toMatchObject({ status: 200 });
  });

  test("without a terminal nothing is coloured, counted or asked", async () => {
    const manifest = path.join(home, "dice/package.json");
    const { dependencies: _none, ...content } = JSON.parse(readFileSync(manifest, "utf8"));
    writeFileSync(manifest, JSON.stringify(content));
    edit("export default", `${mistake}\nexport default`);
    const failed = await platform.spry(["deploy", path.join(home, "dice")]);
    expect(failed).toMatchObject({ code: 1, stdout: "" });
    const deleted = await platform.spry(["delete", "dice"]);
    expect(deleted).toMatchObject({ code: 1, stderr: expect.stringContaining("add --yes") });
    const described = await platform.spry(["describe", "dice"]);
    for (const text of [failed.stderr, described.stdout]) {
      // oxlint-disable-next-line no-control-regex -- these are what must not be there
      expect(text).not.toMatch(/[\u001b\r]/);
      expect(text).toContain("set DATABASE_URL first; version 5 still serves\n");
    }
  });

  test("delete asks first", async () => {
    const command = inTerminal(["delete", "dice"], {
      cwd: home,
      env: { KUBECONFIG: platform.kubeconfig },
    });
    await command.shows(/Delete Function dice in namespace default/);
    command.type("y\r");
    expect(await command.ended).toBe(0);
    expect(await typed("get dice")).toMatchObject({ code: 1 });
  });
});
