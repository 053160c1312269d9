/**
 * Python Functions: a build, responses, and the errors for wrong code. More: python.full.test.ts; its facts
 * without a platform: packages/image/src/builder/{python,secrets}.test.ts, runtimes/python/src/debugger.test.ts.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findPython } from "@spry/machine";
import { describe, expect, onTestFinished, test } from "vitest";
import { enginePlatform, onCluster } from "../support/engine.ts";
import { answerOfOwnModules, ownModules } from "../support/own-modules.ts";
import { functionManifest } from "../support/platform.ts";

/** Of the Functions here; the newest that this machine has. */
const version = await firstHere(["3.12", "3.14"]);
const runtime = `python${version?.replace(".", "")}`;
/** One that it does not have, and that cannot be fetched for it. */
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

const python = (name: string, source: string) => functionManifest(name, source, { runtime });
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

    test("files named as modules of the standard library are the Function's own", async () => {
      const directory = mkdtempSync(path.join(tmpdir(), "spry-python-"));
      onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
      for (const [name, text] of Object.entries(ownModules(runtime))) {
        mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
        writeFileSync(path.join(directory, name), text);
      }
      expect(await platform.spry(["deploy", directory])).toMatchObject({ code: 0 });
      expect(await platform.call("own-modules.default")).toMatchObject({
        status: 200,
        body: answerOfOwnModules,
      });
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
