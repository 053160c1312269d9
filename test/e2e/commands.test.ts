/** Commands of every day, and those of the original's command line, on a platform. */
import { spawn } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { endChild, freePort, hasEnded, patience } from "@spry/test-kit";
import { functionManifest, pause, Platform, root, run } from "../support/platform.ts";

const platform = new Platform();
const home = mkdtempSync(path.join(tmpdir(), "spry-commands-"));
beforeAll(() => platform.start(), 120_000);
afterAll(async () => {
  await platform.remove();
  rmSync(home, { recursive: true, force: true });
});

function directory(name: string, files: Record<string, string>): string {
  for (const [file, content] of Object.entries(files)) {
    const place = path.join(home, name, file);
    mkdirSync(path.dirname(place), { recursive: true });
    writeFileSync(place, content);
  }
  return path.join(home, name);
}
const read = (file: string): string => readFileSync(path.join(home, file), "utf8");

const config = `name: legacy
namespace: default
runtime: nodejs24
source:
  sourceType: inline
env:
  - name: GREETING
    value: Hello
`;
const handler = 'module.exports = { main: () => process.env.GREETING + " from config.yaml" };';

describe("the original's command line", () => {
  test("applies a config.yaml, writes it again, and ejects it", async () => {
    const dir = directory("legacy", { "config.yaml": config, "handler.js": handler });
    const file = path.join(dir, "config.yaml");
    expect(await platform.spry(["apply", "-f", file])).toMatchObject({ code: 0 });
    expect((await platform.call("legacy.default")).body).toBe("Hello from config.yaml");

    const synced = path.join(home, "synced");
    expect(await platform.spry(["sync", "legacy", "--dir", synced])).toMatchObject({ code: 0 });
    expect(read("synced/handler.js")).toBe(handler);
    expect(read("synced/config.yaml")).toContain("name: GREETING");
    // Applied again it changes nothing.
    const again = await platform.spry(["diff", "-f", path.join(synced, "config.yaml")]);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining("no differences") });

    const ejected = path.join(home, "ejected");
    expect(await platform.spry(["eject", "legacy", "-d", ejected])).toMatchObject({ code: 0 });
    expect(read("ejected/function/handler.js")).toBe(handler);
    expect(read("ejected/Dockerfile")).toContain("FROM node:24");
    expect(read("ejected/k8s/deployment.yaml")).not.toContain("serverless.kyma-project.io");
    // What has been written answers by itself.
    const port = await freePort();
    // As its Dockerfile does.
    const app = path.join(ejected, "runtime");
    cpSync(path.join(ejected, "function"), path.join(app, "function"), { recursive: true });
    const child = spawn(process.execPath, [path.join(app, "server.cjs")], {
      cwd: path.join(app, "function"),
      env: { FUNC_PORT: String(port), GREETING: "Goodbye" },
      stdio: "ignore",
    });
    try {
      let body: string | undefined;
      while (body === undefined && !hasEnded(child)) {
        await pause(20);
        body = await fetch(`http://127.0.0.1:${port}/`)
          .then((response) => response.text())
          .catch(() => undefined);
      }
      expect(body).toBe("Goodbye from config.yaml");
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("runs a directory in the background with its flags", async () => {
    const dir = directory("detached", { "config.yaml": config, "handler.js": handler });
    const port = await freePort();
    const spry = path.join(root, "packages/cli/bin/spry.mjs");
    const args = ["run", "-d", dir, "-p", String(port), "--detach", "--hot-deploy"];
    const { code, stdout } = await run(process.execPath, [spry, ...args]);
    const [, pid] = /kill (\d+)/.exec(stdout) ?? [];
    try {
      expect({ code, stdout }).toEqual({ code: 0, stdout: expect.any(String) });
      const response = await fetch(`http://localhost:${port}/`);
      expect(await response.text()).toBe("Hello from config.yaml");
    } finally {
      if (pid) process.kill(Number(pid), "SIGINT");
    }
  });
});

describe("looking", () => {
  test("diff shows what apply would change, and stores nothing", async () => {
    const changed = functionManifest("legacy", handler.replace("from", "out of"));
    const { code, stdout } = await platform.spry(["diff", "-f", "-"], changed);
    expect(code).toBe(1);
    expect(stdout).toMatch(/- .*from config\.yaml/);
    expect(stdout).toMatch(/\+ .*out of config\.yaml/);
    expect((await platform.call("legacy.default")).body).toBe("Hello from config.yaml");
  });

  test("status names what does not run, with the reason", async () => {
    const broken = functionManifest("broken", "exports.main = nope;");
    expect((await platform.spry(["apply", "-f", "-"], broken)).code).toBe(1);
    const { stdout } = await platform.spry(["status"]);
    expect(stdout).toMatch(/Functions: +2 \(/);
    expect(stdout).toMatch(/default\/broken +Failed +handler\.js:1: ReferenceError: nope/);
  });

  test("schema prints what editors check files with", async () => {
    const of = async (...words: string[]) =>
      JSON.parse((await platform.spry(words)).stdout) as { properties: object };
    expect((await of("get", "schema", "serverless")).properties).toHaveProperty("apiRules");
    expect((await of("schema")).properties).toHaveProperty("scale");
  });

  test("explain, version and completion need no cluster", async () => {
    expect((await platform.spry(["explain", "spec.source"])).stdout).toContain("gitRepository");
    const unknown = await platform.spry(["explain", "spec.nope"]);
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("the field spec.nope does not exist"),
    });
    expect((await platform.spry(["version"])).stdout).toMatch(/server +v1\./);
    expect((await platform.spry(["completion", "bash"])).stdout).toContain(
      "complete -F _spry spry",
    );
  });

  test("delete asks, and without a terminal needs --yes", async () => {
    expect(await platform.spry(["delete", "broken"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("add --yes"),
    });
    expect(await platform.spry(["delete", "broken", "--yes"])).toMatchObject({ code: 0 });
  });

  test("logs choose lines by level and by request, and invoke sends an event", async () => {
    const source = `module.exports = { main: (event) => {
      console.warn("careful");
      console.log("got " + event["ce-type"] + " " + JSON.stringify(event.data));
      return "done";
    } };`;
    const env = [{ name: "FUNC_LOG_FORMAT", value: "json" }];
    const manifest = functionManifest("speaking", source, { env });
    expect(await platform.spry(["apply", "-f", "-"], manifest)).toMatchObject({ code: 0 });
    const event = ["--event", "order.created", "--data", '{"id":7}', "--timing"];
    const sent = await platform.spry(["invoke", "speaking", ...event, "-H", "x-request-id: r-7"]);
    expect(sent).toMatchObject({ code: 0, stdout: "done" });
    expect(sent.stderr).toMatch(/response after [\d.]+ ms; complete after [\d.]+ ms/);
    await platform.spry(["invoke", "speaking"]);
    const all = await platform.spry(["logs", "speaking", "--request", "r-7", "--json"]);
    const lines = all.stdout.trim().split("\n");
    // One is from stderr, the other from stdout: two pipes have no order between them.
    const messages = new Set(
      lines.map((line) => (JSON.parse(line) as { message: string }).message),
    );
    expect(messages).toEqual(new Set(["careful", 'got order.created {"id":7}']));
    const warnings = await platform.spry(["logs", "speaking", "--level", "warn"]);
    expect(warnings.stdout.match(/careful/g)).toHaveLength(2);
    expect(warnings.stdout).not.toContain("order.created");
  });

  test("a request whose process was killed is a line of the log, with its id", async () => {
    const source = `module.exports = { main: ({ extensions: { request } }) => {
      if (request.path === "/die") process.exit(3);
      for (const all = []; request.path === "/fill"; ) all.push(Buffer.alloc(8 << 20, 1));
      for (const all = []; request.path === "/heap"; ) all.push(Array(1e6).fill({}));
      return "lives";
    } };`;
    const profile = { resourceConfiguration: { function: { profile: "XS" } } };
    for (const name of ["mortal", "mortal-heap"]) {
      const manifest = functionManifest(name, source, profile);
      expect(await platform.spry(["apply", "-f", "-"], manifest)).toMatchObject({ code: 0 });
    }
    const logged = async (id: string, place: string, name = "mortal") => {
      const options = { method: "POST", path: place, headers: { "x-request-id": id } };
      expect(await platform.call(`${name}.default`, options)).toMatchObject({ status: 502 });
      await platform.callUntil(`${name}.default`, ({ body }) => body === "lives");
      return (await platform.spry(["logs", name, "--request", id])).stdout;
    };
    expect(await logged("r-die", "/die?token=1")).toContain(
      "request r-die (POST /die) was not answered: the container ended with exit code 3\n",
    );
    const limit = "memory limit (128Mi); a Function has it in spec.resourceConfiguration.function";
    expect(await logged("r-heap", "/heap", "mortal-heap")).toBe(
      `request r-heap (POST /heap) was not answered: the container ended: its heap was full, which is a part of its ${limit}\n`,
    );
    // Only a container's own limit ends it before it has taken this machine's memory.
    if (!/Sandbox +oci/.test(await platform.log())) return;
    const killed = `the container was killed: it exceeded its ${limit}`;
    expect(await logged("r-fill", "/fill")).toBe(
      `request r-fill (POST /fill) was not answered: ${killed}\n`,
    );
    const previous = await platform.spry(["logs", "mortal", "--previous"]);
    expect(previous.stdout).toMatch(
      / run 2\] the container was killed: it exceeded .*\n.* run 2\] request r-fill /,
    );
  });

  test("a Function that needs more memory than it has says how much that is, and what raises it", async () => {
    const source = "const all = []; for (;;) all.push(Array(1e6).fill({}));";
    const profile = { resourceConfiguration: { function: { profile: "XS" } } };
    const manifest = functionManifest("hungry", source, profile);
    const { code, stderr } = await platform.spry(["apply", "-f", "-"], manifest);
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.any(String) });
    expect(stderr).toContain("version 1 of hungry failed: out of memory, its limit is 128Mi\n");
    expect(stderr).toContain(
      "choose a larger profile in spec.resourceConfiguration.function or in",
    );
    expect(stderr).not.toContain("Mark-Compact");
    await platform.spry(["delete", "hungry", "--yes"]);
  });

  test("doctor looks at this machine while a platform runs", async () => {
    const { code, stdout } = await platform.spry(["doctor", "--data-dir", platform.dataDir]);
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.any(String) });
    expect(stdout).toMatch(/Node\.js 24/);
    expect(stdout).toContain("you may deploy to namespace default");
    expect(stdout).toContain("a platform is running with the data directory");
    // A tick is before what is well, and nothing else.
    expect(stdout).not.toMatch(/\u2714.*\b(?:not|no)\b/);
    expect(stdout).toMatch(/[\d.]+ GiB of disk space are free/);
    const program = await platform.spry(["doctor", "--data-dir", platform.dataDir, "-o", "json"]);
    expect(program.code).toBe(0);
    const findings = JSON.parse(program.stdout) as { state: string; what: string }[];
    expect(findings.map(({ state }) => state)).toEqual(
      findings.map(() => expect.stringMatching(/^(?:ok|note|problem)$/)),
    );
    expect(findings.at(-1)).toMatchObject({
      state: "note",
      what: expect.stringContaining("a platform is running"),
    });
  });

  test("what tables show is JSON for programs", async () => {
    const file = path.join(home, "asjson.json");
    writeFileSync(file, functionManifest("asjson", "module.exports = { main: () => 1 };"));
    expect(await platform.spry(["apply", "-f", file])).toMatchObject({ code: 0 });
    await platform.spry(["secrets", "set", "asjson", "b=1", "a=2"]);
    await platform.spry(["env", "set", "asjson", "A=b", "--no-wait"]);
    const json = async (...args: string[]) => {
      const { code, stdout, stderr } = await platform.spry([...args, "-o", "json"]);
      expect({ args, code, stderr }).toEqual({ args, code: 0, stderr: "" });
      return JSON.parse(stdout) as unknown;
    };
    expect(await json("status")).toMatchObject({
      cluster: expect.stringContaining("+spry"),
      dataDirectory: platform.dataDir,
      functions: {
        total: expect.any(Number),
        states: expect.any(Object),
        failing: expect.any(Array),
      },
    });
    expect(await json("env", "list", "asjson")).toEqual([{ name: "A", value: "b" }]);
    expect(await json("secrets", "list")).toContainEqual({
      name: "asjson",
      keys: ["a", "b"],
      createdAt: expect.stringMatching(/^\d{4}-/),
    });
    expect(await json("traffic", "asjson")).toEqual([{ latest: true, percent: 100 }]);
    expect(await json("describe", "asjson")).toMatchObject({
      name: "asjson",
      versions: expect.any(Array),
      instances: expect.any(Array),
      events: expect.any(Array),
    });
    for (const args of [["status"], ["env", "list", "asjson"], ["events", "list"], ["doctor"]])
      expect(await platform.spry([...args, "-o", "xml"])).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: unknown output format xml\n {7}use json/),
      });
    await platform.spry(["delete", "asjson", "--yes"]);
  });

  test("get names the version that serves where the newest one has failed", async () => {
    const file = path.join(home, "twostates.json");
    writeFileSync(file, functionManifest("twostates", "module.exports = { main: () => 1 };"));
    expect(await platform.spry(["apply", "-f", file])).toMatchObject({ code: 0 });
    writeFileSync(file, functionManifest("twostates", "throw new Error('no');"));
    expect(await platform.spry(["apply", "-f", file])).toMatchObject({ code: 1 });
    for (const args of [["get"], ["get", "twostates"], ["status"]])
      expect((await platform.spry(args)).stdout).toMatch(/twostates +Failed, version 1 serves /);
    const { stdout } = await platform.spry(["describe", "twostates"]);
    expect(stdout).toMatch(/^Status: +Failed, version 1 serves$/m);
    await platform.spry(["delete", "twostates", "--yes"]);
  });

  test("logs -f goes on with what an instance writes after it was restarted", async () => {
    const source =
      'console.log("loaded"); module.exports = { main: ({ extensions: { request } }) => request.path === "/end" ? process.exit(3) : 1 };';
    const file = path.join(home, "ends.json");
    writeFileSync(file, functionManifest("ends", source));
    expect(await platform.spry(["apply", "-f", file])).toMatchObject({ code: 0 });
    const spry = path.join(root, "packages/cli/bin/spry.mjs");
    const args = ["--kubeconfig", platform.kubeconfig, "logs", "-f", "ends"];
    const child = spawn(process.execPath, [spry, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const loaded = () => output.match(/loaded/g)?.length ?? 0;
    await expect.poll(loaded, { timeout: patience.platform }).toBe(1);
    await platform.call("ends.default", { path: "/end" }).catch(() => undefined);
    await expect.poll(loaded, { timeout: patience.platform }).toBe(2);
    expect(said).toMatch(/ends-\S+ ended with code 3 and was started again\n/);
  });

  test("debug starts a copy whose debugger answers here, and removes it", async () => {
    const port = await freePort();
    const spry = path.join(root, "packages/cli/bin/spry.mjs");
    const args = ["--kubeconfig", platform.kubeconfig, "debug", "legacy", "--port", String(port)];
    const child = spawn(process.execPath, [spry, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    while (!output.includes("Ctrl-C") && !hasEnded(child)) await pause(20);
    const [, calls = ""] = /calls of the copy: (http:\S+)/.exec(output) ?? [];
    expect(output).toContain(`debugger: 127.0.0.1:${port}`);
    const targets = await fetch(`http://127.0.0.1:${port}/json/list`);
    const [target] = (await targets.json()) as { webSocketDebuggerUrl: string }[];
    const socket = new WebSocket(target?.webSocketDebuggerUrl ?? "");
    const messages: { id?: number; method?: string; result?: unknown; params?: unknown }[] = [];
    socket.addEventListener("message", ({ data }) => messages.push(JSON.parse(String(data))));
    const message = async (fits: (each: (typeof messages)[number]) => boolean) => {
      for (;;) {
        const found = messages.find(fits);
        if (found) return found;
        await pause(5);
      }
    };
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const ask = (id: number, method: string, params = {}) => {
      socket.send(JSON.stringify({ id, method, params }));
      return message((each) => each.id === id);
    };
    const evaluated = await ask(1, "Runtime.evaluate", { expression: "process.env.GREETING" });
    expect(evaluated).toMatchObject({ result: { result: { value: "Hello" } } });
    // As launch.json of `spry init` names the directory, whichever sandbox it is.
    const file = "file:///usr/src/app/function/handler.js";
    await ask(2, "Debugger.enable");
    const { params: script } = await message(
      ({ method, params }) =>
        method === "Debugger.scriptParsed" && (params as { url: string }).url === file,
    );
    const { scriptId } = script as { scriptId: string };
    const urlRegex = file.replaceAll(/[/.]/g, String.raw`\$&`);
    const where = { urlRegex, lineNumber: 0, columnNumber: handler.indexOf("process") };
    expect(await ask(3, "Debugger.setBreakpointByUrl", where)).toMatchObject({
      result: { locations: [{ lineNumber: 0 }] },
    });
    const called = fetch(calls);
    const inScript = expect.objectContaining({
      location: expect.objectContaining({ scriptId }),
    });
    expect(await message(({ method }) => method === "Debugger.paused")).toMatchObject({
      params: { callFrames: expect.arrayContaining([inScript]) },
    });
    await ask(4, "Debugger.resume");
    expect(await (await called).text()).toBe("Hello from config.yaml");
    await ask(5, "Debugger.disable");
    const response = await fetch(calls);
    expect(await response.text()).toBe("Hello from config.yaml");
    socket.close();
    expect(await endChild(child, "SIGINT")).toBe(130);
    expect(await platform.k("get pods -l app.kubernetes.io/component=debug -o name")).toBe("");
  });

  test("uninstall is refused on a platform of one machine", async () => {
    expect(await platform.spry(["uninstall"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("not an installation on a cluster"),
    });
  });
});

describe("mistakes are one sentence each", () => {
  const mistakes: [string, string[], string][] = [
    ["an unknown option", ["get", "--nope"], "unknown option '--nope'"],
    ["an unknown command", ["gett"], "\n       did you mean get?"],
    ["lines that are not a number", ["logs", "legacy", "--tail", "abc"], "abc is not a number"],
    ["a time that is not one", ["logs", "legacy", "--since", "yesterday"], "is not a duration"],
    ["seconds that are not", ["deploy", ".", "--timeout", "abc"], "abc is not a number of seconds"],
    ["a file that does not exist", ["apply", "-f", "nope.yaml"], "nope.yaml does not exist"],
    ["a directory that does not exist", ["deploy", "nope"], "nope is not a directory"],
    ["a Function that does not exist", ["logs", "nope"], "Function nope not found"],
    [
      "a schedule that does not exist",
      ["schedule", "run", "legacy", "nope"],
      "-o jsonpath='{.spec.schedules[*].name}' lists them",
    ],
    ["a time limit", ["rollback", "legacy", "--timeout", "abc"], "abc is not a number of seconds"],
    ["nothing to apply", ["apply"], "name a file or a directory"],
    ["help of the command", ["deploy", "--nope"], "\n       see npx spry deploy --help"],
    ["a command of the original", ["function", "nope"], "function has no command nope"],
    ["a schema of nothing", ["schema", "nope.yaml"], "nope.yaml is not a file with a schema"],
    ["a level", ["logs", "legacy", "--level", "loud"], "loud is not a level"],
    ["an output format", ["get", "-o", "nope"], "unknown output format nope"],
    ["an unknown shell", ["completion", "cmd"], "cmd is not a known shell"],
    ["a version of config.yaml", ["sync", "legacy", "--schema-version", "v9"], "v9 is not"],
    ["a file for a body", ["invoke", "legacy", "-d", "@nope"], "the file nope does not exist"],
    [
      "a version that the original no longer serves",
      ["apply", "-f", "RULE"],
      "write apiVersion: gateway.kyma-project.io/v1beta1, and move spec.service.host to spec.host",
    ],
    ["an import of nothing", ["import", "nope.yaml"], "nope.yaml does not exist"],
  ];
  test.each(mistakes)("%s", async (_name, args, words) => {
    const rule = directory("rule", {
      "rule.yaml": `apiVersion: gateway.kyma-project.io/v1alpha1\nkind: APIRule\nmetadata: { name: old }\nspec: {}\n`,
    });
    const { code, stderr } = await platform.spry(
      args.map((each) => (each === "RULE" ? rule : each)),
    );
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
    expect(stderr.trim().split("\n").length).toBeLessThanOrEqual(3);
  });

  test("one of several objects, which does not hide the others", async () => {
    const dir = directory("several", {
      "a.yaml": functionManifest("several-a", "exports.main = () => 1;"),
      "below/b.yaml": functionManifest("Not_A_Name", "exports.main = () => 1;"),
      "below/c.yaml": functionManifest("several-c", "exports.main = () => 1;"),
    });
    const { code, stdout, stderr } = await platform.spry(["apply", "-f", dir, "-R"]);
    expect(code).toBe(1);
    expect(stderr).toContain("Not_A_Name is not valid");
    for (const row of [
      /function\/several-a +running/,
      /function\/Not_A_Name +failed/,
      /function\/several-c +running/,
    ])
      expect(`${stdout}${stderr}`).toMatch(row);
    await platform.k("delete function several-a several-c");
  });

  test("YAML that cannot be read, with its line, and a newer config.yaml", async () => {
    const dir = directory("unreadable", {
      "a.yaml": "kind: Function\n  metadata: [",
      "config.yaml": `schemaVersion: v7\n${config}`,
    });
    const unreadable = await platform.spry(["apply", "-f", path.join(dir, "a.yaml")]);
    expect(unreadable.stderr).toMatch(/a\.yaml.*not valid YAML.*\b2\b/s);
    const newer = await platform.spry(["apply", "-f", path.join(dir, "config.yaml")]);
    expect(newer.stderr).toContain("schemaVersion v7 is newer than this command knows");
  });
});
