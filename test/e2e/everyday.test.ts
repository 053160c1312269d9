/** What a person types every day on a platform that runs, and what they read when something is in the way. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { startSpry } from "../support/spry-process.ts";
import { functionManifest, root } from "../support/platform.ts";

const platform = enginePlatform();
const home = mkdtempSync(path.join(tmpdir(), "spry-everyday-test-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));

function directory(name: string, files: Record<string, string>): string {
  const place = path.join(home, name);
  mkdirSync(place, { recursive: true });
  for (const [file, content] of Object.entries(files))
    writeFileSync(path.join(place, file), content);
  return place;
}

describe("a build that failed because of something else", () => {
  const dir = directory("pad", {
    "handler.js": `exports.main = () => String(require("isarray")([]));\n`,
    "package.json": `{ "dependencies": { "isarray": "2.0.5" } }`,
  });
  const uids = () =>
    platform.k(
      "get jobs -l serverless.kyma-project.io/function-name=pad -o jsonpath={.items[*].metadata.uid}",
    );

  test("is tried again at once by deploy and apply of what has not changed", async () => {
    await platform.k(
      "create secret generic serverless-package-registry-config --from-literal=.npmrc=registry=http://127.0.0.1:9/\nfetch-retries=0\n",
    );
    const failed = await platform.spry(["deploy", dir, "--timeout", "8"]);
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("ECONNREFUSED") });
    const before = await uids();
    const { stdout } = await platform.spry(["get", "pad", "-o", "yaml"]);
    // The status may have changed since it was printed.
    const printed = stdout.replaceAll(/observedGeneration: \d+/g, "observedGeneration: 7");
    const again = await platform.spry(["apply", "--no-wait", "-f", "-"], printed);
    expect(again).toMatchObject({ stderr: expect.stringContaining("unchanged"), code: 0 });
    await expect.poll(uids).not.toBe(before);
    await platform.k("delete secret serverless-package-registry-config");
    const { code, stderr } = await platform.spry(["deploy", dir]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(stderr).toContain("unchanged");
    expect(await platform.call("pad.default")).toMatchObject({ status: 200, body: "true" });
  });
});

/** A server that is none of ours, and a kubeconfig with it. */
async function kubeconfigOf(answer: RequestListener, user: object): Promise<string> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const config = {
    "current-context": "work",
    clusters: [{ name: "c", cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "work", context: { cluster: "c", user: "u" } }],
  };
  const file = path.join(home, "kubeconfig");
  writeFileSync(file, JSON.stringify(config));
  return file;
}

describe("what stands between the command and a cluster is one sentence with the context", () => {
  const unauthorized: RequestListener = (_request, response) => {
    response.writeHead(401, { "content-type": "application/json" });
    response.end(
      JSON.stringify({ kind: "Status", status: "Failure", message: "Unauthorized", code: 401 }),
    );
  };
  const page: RequestListener = (_request, response) => {
    response.writeHead(200, { "content-type": "text/html" });
    response.end("<html>a web server</html>");
  };
  const exec = (command: string, args: string[] = []) => ({
    exec: {
      apiVersion: "client.authentication.k8s.io/v1",
      interactiveMode: "Never",
      installHint: "install it from our pages",
      command,
      args,
    },
  });

  test.each<[string, RequestListener, object, string[]]>([
    [
      "a token that is refused",
      unauthorized,
      { token: "secret-of-mine" },
      ["does not accept the login of the context work", "log in to the cluster again"],
    ],
    [
      "a program for the login that is missing",
      unauthorized,
      exec("no-such-login"),
      ["the login of the context work failed", "no-such-login", "install it from our pages"],
    ],
    [
      "a program for the login that fails",
      unauthorized,
      exec("sh", ["-c", "echo session has expired >&2; exit 3"]),
      ["the login of the context work failed", "session has expired"],
    ],
    ["a web server", page, {}, ["it is not an API server of Kubernetes", "context work"]],
  ])("%s", async (_name, answer, user, words) => {
    const kubeconfig = await kubeconfigOf(answer, user);
    for (const command of [["get"], ["status"], ["logs", "x"], ["apply", "-f", "-"]]) {
      const { code, stderr } = await platform.spry(
        ["--kubeconfig", kubeconfig, ...command],
        "apiVersion: v1\nkind: ConfigMap\nmetadata: { name: x }\n",
      );
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: /),
      });
      for (const word of words) expect(stderr).toContain(word);
      expect(stderr).not.toContain("secret-of-mine");
      expect(stderr.trim().split("\n").length).toBeLessThan(4);
    }
  });
});

describe.skipIf(process.platform === "win32")("output that cannot be written", () => {
  const shell = (command: string) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      const env = { ...process.env, KUBECONFIG: platform.kubeconfig, SPRY: spryCommand };
      execFile("bash", ["-c", command], { env }, (error, stdout, stderr) =>
        resolve({ code: error?.code ?? 0, stdout, stderr }),
      );
    });
  const spryCommand = path.join(root, "packages/cli/bin/spry.mjs");

  test.each(["explain spec", "get -A -o json", "--help"])(
    "spry %s ends without a word when its reader has ended",
    async (command) => {
      const { stderr, stdout } = await shell(
        `{ sleep 2; "$SPRY" ${command}; echo "code $?" >&3; } 3>&2 | true`,
      );
      expect({ stderr, stdout }).toEqual({ stderr: "code 141\n", stdout: "" });
    },
  );

  test
    .runIf(existsSync("/dev/full"))
    .each(["explain spec", "get -A", "--help", "get --help", "help deploy", "version"])(
    "spry %s reports a full disk in one sentence",
    async (command) => {
      const { code, stderr } = await shell(`"$SPRY" ${command} >/dev/full`);
      expect({ code, stderr }).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^error: standard output cannot be written: .*no space.*\n$/),
      });
    },
  );
});

test.each([
  ["-1", "-1 is not a possible number of instances"],
  ["abc", "abc is not a number of instances"],
  ["-1", "use a whole number from 1 to 99999"],
  ["100000", "use a whole number from 1 to 99999"],
  ["1.5", "use a whole number from 1 to 99999"],
  ["0", "scale.min"],
])("spry scale hello %s says which numbers there are", async (number, words) => {
  const { code, stderr } = await platform.spry(["scale", "hello", number]);
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining(words) });
});

test("spry scale remarks that the cluster has no room for so many", async () => {
  await platform.k("apply -f -", functionManifest("scaled", `exports.main = () => "scaled";`));
  const { code, stderr } = await platform.spry(["scale", "scaled", "99999"]);
  await platform.spry(["scale", "scaled", "1"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
  expect(stderr).toMatch(/^remark: the cluster has room for \d+ Pods: /m);
  expect(await platform.spry(["scale", "scaled", "2"])).toMatchObject({
    stderr: "function/scaled scaled to 2\n",
  });
  await platform.spry(["delete", "--name", "scaled", "--yes"]);
});

describe("a mistake is answered in one sentence", () => {
  const good = { "handler.js": "export const main = () => 1;\n" };
  const dir = directory("mistaken", { ...good, ".env": "A=1\n", "bad.env": 'A="x\ny"\nno line\n' });
  test.each<[string, string[], string]>([
    ["a method", ["invoke", "mistaken", "-X", "B AD"], "B AD is not a valid HTTP method"],
    ["a name", ["deploy", dir, "--name", "Bad_Name"], "Bad_Name is not a valid name of a Function"],
    ["a long name", ["deploy", dir, "--name", "a".repeat(64)], "use at most 63"],
    ["an empty directory name", ["init", ""], "the directory's name is empty"],
    ["a namespace to deploy to", ["-n", "nope", "deploy", dir], "namespace nope does not exist"],
    ["a namespace to list", ["-n", "nope", "get"], "namespace nope does not exist"],
    ["a namespace of Secrets", ["-n", "nope", "secrets", "list"], "namespace nope does not exist"],
    [
      "a line of .env",
      ["secrets", "import", "s", path.join(dir, "bad.env")],
      "bad.env:3: this line is",
    ],
    ["a Secret's name", ["secrets", "set", "X", "A=1"], "X is not a valid name of a Secret"],
    ["labels", ["get", "-l", "==="], "-l === is not a label selector"],
    ["a Secret without keys", ["secrets", "set", "nope", "A-"], "Secret nope not found"],
  ])("%s", async (_name, args, words) => {
    const { code, stderr } = await platform.spry(args);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringMatching(/^error: /) });
    expect(stderr).toContain(words);
    expect(stderr.trim().split("\n").length).toBeLessThan(4);
  });
});

test("keys of a Secret are set and removed", async () => {
  await platform.spry(["secrets", "set", "pair", "A=1", "B=2"]);
  expect(await platform.spry(["secrets", "set", "pair", "A-", "C=3"])).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("secret/pair: C set; A removed\n"),
  });
  expect(await platform.k("get secret pair -o jsonpath={.data}")).toBe('{"B":"Mg==","C":"Mw=="}');
});

test("a Function's name is understood as kubectl prints it", async () => {
  await platform.k("apply -f -", functionManifest("named", `exports.main = () => "named";`));
  await platform.k("wait --for=condition=Running function/named --timeout=60s");
  const printed = (await platform.k("get functions -o name")).split("\n")[0] ?? "";
  expect(printed).toMatch(/^function\.serverless\.kyma-project\.io\//);
  const named = "functions.serverless.kyma-project.io/named";
  for (const args of [
    ["get", named],
    ["get", "function", "named"],
    ["describe", "fn/named"],
    ["logs", "function/named"],
    ["invoke", "function/named"],
    ["history", "fn/named"],
    ["env", "list", "function/named"],
    ["scale", "function/named", "1"],
    ["delete", "function/named", "--yes"],
  ]) {
    const { code, stderr } = await platform.spry(args);
    expect({ args, code, stderr }).toMatchObject({ code: 0 });
  }
});

test("a copy with a debugger's port is closed to other Pods, and its policy goes with it", async () => {
  const probe = `exports.main = ({ extensions: { request: { query } } }) =>
  fetch(query.url, { signal: AbortSignal.timeout(2000) }).then(({ status }) => "reached " + status, () => "kept from it");\n`;
  for (const name of ["watched", "probe"])
    await platform.k("apply -f -", functionManifest(name, probe));
  for (const name of ["watched", "probe"])
    await platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
  const debug = startSpry(["debug", "watched", "--port", "0"], { KUBECONFIG: platform.kubeconfig });
  const [, calls = ""] = await debug.prints(/calls of the copy: (http:\S+)\s[^]*Ctrl-C/);
  expect((await fetch(calls)).status).toBe(200);
  const copies = "get pods -l app.kubernetes.io/component=debug -o jsonpath=";
  const address = await platform.k(`${copies}{.items[0].status.podIP}`);
  const name = await platform.k(`${copies}{.items[0].metadata.name}`);
  const policy = "get networkpolicy -l app.kubernetes.io/instance -o jsonpath=";
  expect(await platform.k(`${policy}{.items[*].metadata.ownerReferences[*].name}`)).toBe(name);
  // Processes without a network of their own are kept from Services alone (docs/security.md), and a cluster's network is its own.
  if ((await platform.k("get node -l node.spry.io/sandbox=oci -o name")) !== "") {
    for (const port of [9229, 8080]) {
      const url = encodeURIComponent(`http://${address}:${port}/json/version`);
      const { body } = await platform.call("probe.default", { path: `/?url=${url}` });
      expect(body).toBe("kept from it");
    }
  }
  expect(await debug.end()).toBe(130);
  expect(await platform.k(`${policy}{.items[*].metadata.name}`)).toBe("");
  expect(await platform.k(`${copies}{.items[*].metadata.name}`)).toBe("");
});

test("kubectl cp copies both ways, and a container has what users type first", async () => {
  await platform.k("apply -f -", functionManifest("copied", "exports.main = () => 1;"));
  await platform.k("wait --for=condition=Running function/copied --timeout=60s");
  const selector =
    "-l serverless.kyma-project.io/function-name=copied,serverless.kyma-project.io/resource=deployment";
  const pod = await platform.k(`get pods ${selector} -o jsonpath={.items[0].metadata.name}`);
  const here = path.join(home, "copied");
  mkdirSync(path.join(here, "below"), { recursive: true });
  const bytes = Buffer.from([0, 255, 10, 13, 0]);
  writeFileSync(path.join(here, "below", "file with blanks"), bytes);
  await platform.k(`cp ${here} ${pod}:/tmp/copied -c function`);
  await platform.k(`cp ${pod}:/tmp/copied ${here}-back -c function`);
  expect(readFileSync(path.join(`${here}-back`, "below", "file with blanks"))).toEqual(bytes);
  const run = async (...command: string[]) => {
    const args = ["exec", pod, "-c", "function", "--", ...command];
    const { stdout } = await platform.kubectl(args);
    return stdout;
  };
  expect(await run("ps", "aux")).toMatch(/PID +PPID CMD\n[^]*node/);
  expect(await run("which", "ls", "nope", "ps")).toMatch(/\/ls\n[^]*\/ps/);
  expect(await run("sh", "-c", "ls / | head -n 3 | wc -l; env | grep -c PATH; id -u")).toMatch(
    /3\n[1-9]\n\d+/,
  );
});

describe("spry get prints exactly what kubectl prints", () => {
  beforeAll(async () => {
    for (const name of ["first", "second"]) {
      const manifest = functionManifest(name, "exports.main = () => 1;", { replicas: 1 });
      await platform.k("apply -n default -f -", manifest);
      await platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
    }
  });

  test.each([
    "jsonpath={.items[*].metadata.name}",
    String.raw`jsonpath={range .items[*]}{.metadata.name}{"\t"}{.spec.runtime}{"\n"}{end}`,
    String.raw`jsonpath={range .items[*]}{.metadata.name}: {range .status.conditions[*]}{.type}={.status} {end}{"\n"}{end}`,
    String.raw`jsonpath={.items[0].metadata.name}{"\n"}`,
    "jsonpath={.items[-1].metadata.name}",
    "jsonpath={.items[0:2].metadata.name}",
    "jsonpath={.items[1:].metadata.name}",
    "jsonpath={.items[0,1].metadata.name}",
    `jsonpath={.items[?(@.metadata.name=="second")].spec.runtime}`,
    "jsonpath={.items[*]['metadata.name','spec.runtime']}",
    `jsonpath={.items[*].status.conditions[?(@.type=="Running")].status}`,
    "jsonpath={range .items[?(@.status.replicas>0)]}{@.metadata.name}{' '}{end}",
    "jsonpath={$.kind} {.items[0].spec.nothing}",
    "jsonpath={.items[*].spec}",
    "jsonpath={.items[*].status.replicas}",
    String.raw`jsonpath={.items[*].metadata.annotations.serverless\.kyma-project\.io/none}`,
    "custom-columns=NAME:.metadata.name,RUNTIME:.spec.runtime",
    "custom-columns=N:{.metadata.name},NONE:.spec.nothing,COND:status.conditions[*].type",
  ])("with -o %s", async (output) => {
    const ours = await platform.spry(["get", "-o", output]);
    const theirs = await platform.kubectl(["get", "functions", "-o", output]);
    expect(theirs).toMatchObject({ code: 0 });
    expect(ours).toMatchObject({ code: 0, stdout: theirs.stdout });
  });

  test("and refuses what it does not know", async () => {
    const { code, stderr } = await platform.spry(["get", "-o", "go-template={{.items}}"]);
    expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining("kubectl") });
  });
});
