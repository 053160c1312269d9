/** Ctrl-C: each command that takes a while ends with 130, names what continues, and leaves nothing behind. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../kit/index.ts";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";
import { hasTerminals, inTerminal } from "../support/terminal.ts";
import { untilTrue } from "../support/until-true.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-interrupt-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Has the program believe that it runs on Node.js 20. */
const oldNode = `data:text/javascript,${encodeURIComponent(
  'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.0.0" } }); delete process.execve;',
)}`;
/** Loads for a minute. */
const slowCode =
  "await new Promise((resolve) => setTimeout(resolve, 60_000));\nexport default {};\n";
const silentCode = `console.log("loaded");
export const main = () => (console.log("called"), new Promise(() => {}));
`;
const files: Record<string, string> = {
  "slow/handler.mjs": slowCode,
  "slow.json": functionManifest("applied", slowCode, { dependencies: '{ "type": "module" }' }),
  "fast/handler.js": "export default { fetch: () => new Response('here') };\n",
  "fast/package.json": '{ "type": "module" }\n',
  "fast/handler.test.js":
    "import test from 'node:test';\ntest('waits', async () => {\n  console.log('it waits');\n  await new Promise((resolve) => setTimeout(resolve, 60_000));\n});\n",
};

beforeAll(async () => {
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(path.join(home, path.dirname(file)), { recursive: true });
    writeFileSync(path.join(home, file), content);
  }
  const manifest = functionManifest("silent", silentCode, { dependencies: '{ "type": "module" }' });
  await platform.k("apply -f -", manifest);
  await platform.k("wait --for=condition=Running function/silent --timeout=110s");
}, patience.cluster);

interface Row {
  args: string[];
  /** What it shows when the key is pressed. */
  at: RegExp;
  /** What it says then. */
  says?: RegExp;
}

const continues = (name: string) =>
  new RegExp(
    `interrupted: the platform continues, and\\s+npx\\s+spry\\s+describe\\s+${name}\\s+shows\\s+its\\s+state`,
  );
const rows: Record<string, Row> = {
  deploy: { args: ["deploy", "slow"], at: /… (?:build|running):/, says: continues("slow") },
  apply: {
    args: ["apply", "-f", "slow.json"],
    at: /… (?:build|running):/,
    says: continues("applied"),
  },
  dev: { args: ["dev", "fast", "--port", "0"], at: /keys: / },
  "dev, before the code is loaded": {
    args: ["dev", "slow", "--port", "0"],
    at: /slow \(nodejs24\)/,
  },
  test: { args: ["test", "fast"], at: /it waits/ },
  "logs -f": { args: ["logs", "silent", "-f"], at: /loaded/ },
  "get -w": { args: ["get", "-w"], at: /silent/ },
  debug: { args: ["debug", "silent", "--port", "0"], at: /Ctrl-C ends it/ },
  "delete, which asks": {
    args: ["delete", "silent"],
    at: /\[y\/N\]/,
    says: /interrupted: nothing was changed/,
  },
};

describe.skipIf(!hasTerminals)("Ctrl-C ends", () => {
  test.each(Object.entries(rows))("%s", async (name, { args, at, says }) => {
    const own = path.join(home, `tmp-${name.replaceAll(/\W/g, "-")}`);
    mkdirSync(own);
    const env = { TMPDIR: own, KUBECONFIG: platform.kubeconfig };
    const command = inTerminal(args, { cwd: home, env });
    await command.shows(at);
    command.type("\u0003");
    const code = await command.ended;
    expect({ code, output: command.output() }).toMatchObject({ code: 130 });
    if (says) expect(command.output()).toMatch(says);
    expect(command.output()).not.toContain("Error:");
    expect(
      command
        .output()
        .split("\n")
        .filter((line) => line.length > 80),
    ).toEqual([]);
    const isQuiet = () => Promise.resolve(processesOf(own).length === 0);
    await untilTrue("no process is left", isQuiet, patience.condition);
  });

  test("debug, and no copy of the Function is left, also when it had not started", async () => {
    const command = inTerminal(["debug", "silent", "--port", "0"], {
      cwd: home,
      env: { KUBECONFIG: platform.kubeconfig },
    });
    const copies = () => platform.k("get pods -l app.kubernetes.io/component=debug -o name");
    await untilTrue("there is a copy", async () => (await copies()) !== "", patience.platform);
    command.type("\u0003");
    expect(await command.ended).toBe(130);
    expect(await copies()).toBe("");
  });

  test.each([
    ["", {}],
    // It starts another process, and waits for it.
    [", with a Node.js that is too old", { NODE_OPTIONS: `--import ${oldNode}` }],
  ])("a call that is not answered%s", async (_name, env) => {
    const command = inTerminal(["invoke", "silent"], {
      cwd: home,
      env: { KUBECONFIG: platform.kubeconfig, ...env },
    });
    const logs = () => platform.k("logs -l serverless.kyma-project.io/function-name=silent");
    const isCalled = async () => (await logs()).includes("called");
    await untilTrue("the Function has been called", isCalled, patience.platform);
    command.type("\u0003");
    expect(await command.ended).toBe(130);
    await platform.k("delete pods -l serverless.kyma-project.io/function-name=silent");
    await platform.k("wait --for=condition=Running function/silent --timeout=110s");
  });

  test.skipIf(onCluster)("the platform itself, while it starts and when it runs", async () => {
    const own = path.join(home, "platform");
    const ports = ["api", "gateway", "https", "publisher", "registry", "dashboard"];
    const args = [
      "up",
      "--data-dir",
      own,
      "--no-example",
      ...ports.flatMap((port) => [`--${port}-port`, "0"]),
    ];
    for (const at of [/Functions on one machine/, /Ctrl-C stops/]) {
      const command = inTerminal(args, { cwd: home });
      await command.shows(at);
      command.type("\u0003");
      const code = await command.ended;
      expect({ code, output: command.output() }).toMatchObject({
        code: 130,
        output: expect.stringContaining("Stopping ..."),
      });
      expect(processesOf(own)).toEqual([]);
    }
  });
});
