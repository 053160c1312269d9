/** Python Functions: a build with pip, answers, and what a person is told when it goes wrong. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { DebuggerClient, freePort } from "@spry/test-kit";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { functionManifest, root } from "../support/platform.ts";
import { startSpry } from "../support/spry-process.ts";

/** Of the Functions here; the newest that this machine has. */
const version = await firstHere(["3.12", "3.14"]);
const runtime = `python${version?.replace(".", "")}`;
/** One that it does not have, and nobody can fetch for it. */
const absent = hasGo() ? undefined : await firstAbsent(["3.14", "3.12"]);
const canHave = hasGo() || (await findPython("3.14")) !== undefined;

const platform = enginePlatform();

function hasGo(): boolean {
  return spawnSync("go", ["version"]).status === 0;
}

async function firstHere(versions: string[]): Promise<string | undefined> {
  for (const each of versions) if (await findPython(each)) return each;
  return undefined;
}

async function firstAbsent(versions: string[]): Promise<string | undefined> {
  for (const each of versions) if (!(await findPython(each))) return each;
  return undefined;
}

const python = (name: string, source: string, spec: { dependencies?: string } = {}) =>
  functionManifest(name, source, { runtime, ...spec });
const answering = (text: string) => `def main(event, context):\n    return "${text}"\n`;

describe.skipIf(!version)(
  version ? `on Python ${version}` : "skipped: neither Python 3.12 nor 3.14 is on this machine",
  () => {
    test("apply, wait, call, edit", async () => {
      await platform.k("apply -f -", python("life", answering("one")));
      await platform.k("wait --for=condition=Running function/life --timeout=110s");
      expect(await platform.call("life.default")).toMatchObject({ status: 200, body: "one" });
      await platform.k("apply -f -", python("life", answering("two")));
      const isTwo = ({ status, body }: { status: number; body: string }) =>
        status === 200 && body === "two";
      await platform.callUntil("life.default", isTwo);
    });

    test("spry debug opens debugpy's port of a copy: a breakpoint stops its calls, and not the Function's", async () => {
      const source = `def main(event, context):\n    place = __file__\n    return place\n`;
      await platform.k("apply -f -", python("stops", source, { dependencies: "debugpy\n" }));
      await platform.k("wait --for=condition=Running function/stops --timeout=170s");
      const port = await freePort();
      const env = { KUBECONFIG: platform.kubeconfig };
      const command = startSpry(["debug", "stops", "--port", String(port)], env);
      const [, calls = ""] = await command.prints(/calls of the copy: (http:\S+)[^]*Ctrl-C/);
      const place = await (await fetch(calls)).text();
      using editor = new DebuggerClient(port);
      await editor.attach(place, 3);
      const answer = fetch(calls);
      expect(await editor.variableWhereItStops("place")).toBe(`'${place}'`);
      expect(await platform.call("stops.default")).toMatchObject({ status: 200 });
      editor.continue();
      expect((await answer).status).toBe(200);
      expect(await command.end()).toBe(130);
    }, 240_000);

    test("the image's bytecode is used, and the machine's packages are not", async () => {
      const source = [
        "import os, sys",
        "def main(event, context):",
        "    server = sys.modules['spry_runtime.invocation'].__cached__",
        "    return {'compiled': os.path.exists(server), 'path': sys.path}",
      ].join("\n");
      await platform.k("apply -f -", python("inside", source));
      await platform.k("wait --for=condition=Running function/inside --timeout=110s");
      const inside = JSON.parse((await platform.call("inside.default")).body);
      expect(inside.compiled).toBe(true);
      const foreign = (inside.path as string[]).filter(
        (each) => each.endsWith("-packages") && !each.includes(`lib.python${version}`),
      );
      expect(foreign).toEqual([]);
    });

    test.skipIf(version !== "3.12")("the example runs, with its dependency", async () => {
      const example = path.join(root, "examples/python-hello/function.yaml");
      await platform.k(`apply -f ${example}`);
      await platform.k("wait --for=condition=Running function/python-hello --timeout=110s");
      const answer = await platform.call("python-hello.default", { path: "/?name=Ada" });
      expect(answer).toMatchObject({
        status: 200,
        body: "Hello, Ada! A million is 1.0 million.\n",
      });
      expect(readFileSync(example, "utf8")).toContain("humanize==");
    });

    test("describe shows a package that does not exist, and it is not tried again", async () => {
      const dependencies = "no-such-package-of-spry==1.0\n";
      await platform.k("apply -f -", python("lost", answering("x"), { dependencies }));
      await platform.k(
        "wait --for=jsonpath={.status.conditions[?(@.type=='BuildReady')].reason}=JobFailed function/lost --timeout=110s",
      );
      const text = await platform.k("describe function lost");
      expect(text).toContain("No matching distribution found for no-such-package-of-spry==1.0");
      expect(text).not.toContain("will be re-run");
    });

    test("a Secret's pip.conf says where packages are from; an index that is away is tried again", async () => {
      await platform.k("create namespace private");
      await platform.k(
        "create secret generic serverless-package-registry-config -n private --from-literal=pip.conf=[global]\nindex-url=http://me:s3cret@127.0.0.1:1/simple\n",
      );
      const spec = { runtime, dependencies: "greeting\n" };
      const metadata = { namespace: "private" };
      await platform.k("apply -f -", functionManifest("away", answering("x"), spec, metadata));
      await expect
        .poll(() => platform.k("describe function away -n private"), { timeout: 110_000 })
        .toMatch(/will be re-run: installing dependencies.*Connection refused/s);
      expect(await platform.k("get functions,pods,events -n private -o yaml")).not.toContain(
        "s3cret",
      );
    });

    test("describe shows why the code does not load, with its line, while the old code serves", async () => {
      await platform.k("apply -f -", python("broken", answering("good")));
      await platform.k("wait --for=condition=Running function/broken --timeout=110s");
      const source = `import no_such_module\n${answering("bad")}`;
      await platform.k("apply -f -", python("broken", source));
      await expect
        .poll(() => platform.k("describe function broken"), { timeout: 110_000 })
        .toMatch(/handler\.py", line 1.*No module named 'no_such_module'/s);
      expect(await platform.call("broken.default")).toMatchObject({ status: 200, body: "good" });
    });
  },
);

const whyNotFetched = onCluster
  ? " (skipped: in a cluster the images have the interpreters)"
  : canHave
    ? ""
    : " (skipped: Python 3.14 is not here, nor is Go, with which it is fetched)";
test.skipIf(whyNotFetched !== "")(
  `python314 runs on Python 3.14, which is fetched where it is not here${whyNotFetched}`,
  async () => {
    const source = [
      "import platform, six",
      "def main():",
      "    return {'version': platform.python_version(), 'six': six.__name__}",
    ].join("\n");
    const manifest = functionManifest("latest", source, {
      runtime: "python314",
      dependencies: "six==1.17.0",
    });
    await platform.k("apply -f -", manifest);
    await platform.k("wait --for=condition=Running function/latest --timeout=170s");
    const { body } = await platform.call("latest.default");
    expect(JSON.parse(body)).toEqual({ version: expect.stringMatching(/^3\.14\./), six: "six" });
  },
  200_000,
);

const whyNoneAbsent = onCluster ? " (skipped: in a cluster the images have the interpreters)" : "";
test.skipIf(!absent || onCluster)(
  `describe tells which versions of Python this machine has${whyNoneAbsent}`,
  async () => {
    const manifest = functionManifest("absent", "def main(*args):\n    return 1\n", {
      runtime: `python${absent?.replace(".", "")}`,
    });
    await platform.k("apply -f -", manifest);
    await expect
      .poll(() => platform.k("describe function absent"))
      .toMatch(new RegExp(`Python ${absent} is not on this machine \\(it has .*\\): install`));
    // It waits for its Python, not in the way of others.
    await platform.k(
      "apply -f -",
      functionManifest("other", "module.exports = { main: () => 1 };"),
    );
    await platform.k("wait --for=condition=Running function/other --timeout=110s");
  },
);
