/** Logins of package registries in a live platform: builds use them, and afterwards they are in no image, log, status, Event or object. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { decompressed } from "../../packages/image/src/testing/decompressed.ts";
import { contentOf } from "../support/files-below.ts";
import { canCompileFor, nativeSource, nativeWheel } from "../support/native-python.ts";
import { functionManifest, Platform } from "../support/platform.ts";
import { ownSecrets, secretsInLogs } from "../support/secrets-in-logs.ts";
import {
  type PrivateRegistry,
  startPrivateIndex,
  startPrivateNpm,
} from "../support/private-registries.ts";
import { testedSandbox } from "../support/host-address.ts";

const token = "npm_Zx81Qspectrum48k";
const password = "s3cret%2Fpa55word";
/** In the forms in which they could be kept. */
const traces = [token, password, "s3cret/pa55word", Buffer.from(token).toString("base64")];
const interpreter = (await findPython("3.12"))?.executable;
const python = interpreter ? "python312" : undefined;
const canCompile = interpreter !== undefined && canCompileFor(interpreter);
/** Containers of `oci` have no compiler: there the package is compiled before. */
const isCompiled = testedSandbox() === "oci";

/** What talks most says most. */
const platform = new Platform({ env: { SPRY_LOG_LEVEL: "debug" } });
const registries: PrivateRegistry[] = [];

/** Looks for the files and variables that a build's credentials come from, where a script of a package would. */
const nosy = `
const { readFileSync, readdirSync, writeFileSync } = require("node:fs");
const root = process.env.SPRY_ROOT ?? "";
const found = {};
for (const dir of ["/workspace/registry-config", "/docker", "/workspace/git-credentials"])
  for (const base of [root, ""])
    try { for (const name of readdirSync(base + dir)) found[base + dir + "/" + name] = readFileSync(base + dir + "/" + name, "utf8"); } catch {}
for (const name of [process.env.npm_config_userconfig, process.env.INIT_CWD + "/.npmrc"])
  try { found[name] = readFileSync(name, "utf8"); } catch {}
console.error("npm error", JSON.stringify(found));
writeFileSync("found.json", JSON.stringify({ found, env: process.env }));
`;

beforeAll(async () => {
  await platform.start();
  const npm = await startPrivateNpm(token, {
    "secret-sauce": { files: { "index.js": "module.exports = 'sauce';" } },
    nosy: { scripts: { postinstall: "node look.js" }, files: { "look.js": nosy } },
    loud: { scripts: { postinstall: "node look.js; exit 1" }, files: { "look.js": nosy } },
  });
  registries.push(npm);
  const config: Record<string, string> = {
    ".npmrc": `registry=${npm.url}/\n//${npm.host}/:_authToken=${token}\n`,
  };
  if (interpreter) {
    const native = () => (isCompiled ? nativeWheel(interpreter) : nativeSource());
    const more = canCompile ? await native() : {};
    const index = await startPrivateIndex("builder", "s3cret/pa55word", "sauce", more);
    registries.push(index);
    const trusted = `trusted-host = ${index.host.split(":")[0]}`;
    config["pip.conf"] =
      `[global]\nindex-url = http://builder:${password}@${index.host}/simple\n${trusted}\n`;
  }
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "serverless-package-registry-config" },
    stringData: config,
  };
  await platform.k("apply -f -", JSON.stringify(secret));
});
afterAll(async () => {
  for (const each of registries) each.close();
  await platform.remove();
});

const wanting = (...names: string[]) =>
  JSON.stringify({ dependencies: Object.fromEntries(names.map((name) => [name, "1.0.0"])) });
describe("a login of a package registry", () => {
  test("gets private packages for npm, and their scripts see nothing of it", async () => {
    const source = `const found = require("nosy/found.json"); module.exports = { main: () => ({ sauce: require("secret-sauce"), ...found }) };`;
    const dependencies = wanting("secret-sauce", "nosy");
    await platform.k("apply -f -", functionManifest("nosy", source, { dependencies }));
    await platform.k("wait --for=condition=Running function/nosy --timeout=120s");
    const { body } = await platform.call("nosy.default");
    const seen = JSON.parse(body) as { sauce: string; found: Record<string, string> };
    expect(seen.sauce).toBe("sauce");
    expect(Object.keys(seen.found).filter((file) => /docker|registry-config/.test(file))).toEqual(
      [],
    );
    expectNoTrace(body, "what the script saw");
  });

  test("is not in the report of a script that fails", async () => {
    const loud = functionManifest("loud", "module.exports = { main() {} };", {
      dependencies: wanting("loud"),
    });
    await platform.k("apply -f -", loud);
    await platform.k("wait --for=condition=BuildReady=False function/loud --timeout=120s");
    await waitForReason("loud", "JobFailed");
    const { stdout } = await platform.kubectl(["describe", "function", "loud"]);
    expect(stdout).toMatch(/npm rebuild ended with 1/);
    expectNoTrace(stdout, "kubectl describe");
  });

  test.skipIf(!python)("gets private packages for pip", async () => {
    const source = `import sauce\ndef main(event, context):\n    return sauce.word\n`;
    const manifest = functionManifest("pips", source, {
      runtime: python,
      dependencies: "sauce==1.0.0\n",
    });
    await platform.k("apply -f -", manifest);
    await platform.k("wait --for=condition=Running function/pips --timeout=120s");
    const { body } = await platform.call("pips.default");
    expect(body).toBe("from the private index");
  });

  const form = isCompiled ? "as a wheel" : "compiled by the build";
  test.skipIf(!canCompile)(
    canCompile
      ? `gets a package in C for pip, ${form}`
      : "skipped: no compiler or no headers for Python 3.12",
    async () => {
      const source = `import native\ndef main(event, context):\n    return native.word()\n`;
      const manifest = functionManifest("native", source, {
        runtime: python,
        dependencies: "native==1.0.0\n",
      });
      await platform.k("apply -f -", manifest);
      await platform.k("wait --for=condition=Running function/native --timeout=120s");
      expect((await platform.call("native.default")).body).toBe("from C");
    },
  );

  test("is in no object but its Secret, no log, and no byte of the registry", async () => {
    const kinds =
      "functions,configmaps,jobs,pods,deployments,replicasets,services,events,serviceaccounts";
    expectNoTrace(await platform.k(`get ${kinds} -A -o yaml`), "the objects");
    for (const pod of (await platform.k("get pods -A -o name")).trim().split("\n")) {
      const { stdout } = await platform.kubectl(["logs", "--all-containers", "-n=default", pod]);
      expectNoTrace(stdout, `the log of ${pod}`);
    }
    expectNoTrace(platform.output, "the platform's own log");
    for (const file of platform.registryFiles())
      expectNoTrace(decompressed(contentOf(file)).toString("latin1"), file);
  });

  test("nor is any other secret in a log of the API, the gateway or a builder", async () => {
    const bearer = (await platform.k("create token default")).trim();
    const callers = { header: "caller-0f3a9c-header", cookie: "caller-77be21-cookie" };
    const headers = {
      authorization: `Bearer ${callers.header}`,
      cookie: `session=${callers.cookie}`,
    };
    await platform.call("nobody.default", { headers });
    await platform.call("nosy.default", { headers });
    // Refused, with something to say about it.
    await platform.kubectl(["--token", `${bearer}x`, "get", "pods"]);
    await platform.kubectl(["--token", bearer, "get", "secrets", "-A"]);
    const opaque = {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "wrong name!" },
      stringData: { key: "opaque-5d2e81-value" },
    };
    await platform.kubectl(["apply", "-f", "-"], JSON.stringify(opaque));
    const secrets = [...traces, bearer, ...Object.values(callers), "opaque-5d2e81-value"];
    const all = [...secrets, ...ownSecrets(platform.dataDir)];
    expect(all.length).toBeGreaterThan(10);
    expect(secretsInLogs(platform.dataDir, platform.output, all)).toEqual([]);
    // It would be found: what was said of that Secret is there.
    expect(secretsInLogs(platform.dataDir, platform.output, ["spry"])).not.toEqual([]);
  });
});

async function waitForReason(name: string, reason: string): Promise<void> {
  const path = `{.status.conditions[?(@.type=="BuildReady")].reason}`;
  await platform.k(`wait --for=jsonpath=${path}=${reason} function/${name} --timeout=120s`);
}

function expectNoTrace(text: string, where: string): void {
  for (const trace of traces) expect(text.includes(trace), `${trace} in ${where}`).toBe(false);
}
