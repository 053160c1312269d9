/** Python Functions with packages of pip: the debugger, the example, and the errors for packages that do not exist. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { DebuggerClient, freePort } from "@spry/test-kit";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest, root } from "../support/platform.ts";
import { startSpry } from "../support/spry-process.ts";

/** The older of those that this machine has. */
const version = (await findPython("3.12")) ? "3.12" : (await findPython("3.14")) && "3.14";
const runtime = `python${version?.replace(".", "")}`;

const platform = enginePlatform();

const python = (name: string, source: string, spec: { dependencies?: string } = {}) =>
  functionManifest(name, source, { runtime, ...spec });
const answering = (text: string) => `def main(event, context):\n    return "${text}"\n`;

describe.skipIf(!version)(
  version ? `on Python ${version}` : "skipped: neither Python 3.12 nor 3.14 is on this machine",
  () => {
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
  },
);
