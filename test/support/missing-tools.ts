/** Machines that lack a program: what the first lines promise is what works. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform } from "./platform.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const pathsOf = (names: string[]) =>
  names.flatMap((name) => dirs.map((dir) => `${dir}/${name}`)).filter(existsSync);

/** Starts a program on a machine that seems not to have these: in mounts of its own, something that cannot be run is in their place. */
function without(names: string[]): [string, ...string[]] {
  const hide = pathsOf(names).map((file) => `mount --bind /dev/null ${file}`);
  return ["unshare", "--mount", "sh", "-c", `set -e; ${hide.join("; ")}; exec "$@"`, "sh"];
}

const canHide = () => {
  try {
    execFileSync("unshare", ["--mount", "true"]);
    return true;
  } catch {
    return false;
  }
};

/** Calls a Service by its name, and publishes an event. */
const caller = `exports.main = async (event) => {
  const hello = await fetch("http://callee.default/").then((answer) => answer.text());
  await event.emitCloudEvent("seen.v1", "test", { hello });
  return hello;
};`;

export interface MissingTool {
  lacks: string[];
  args?: string[];
  /** In the first lines. */
  says: RegExp;
  node: RegExp;
  /** Whether Functions know Services by their names. */
  hasNames: boolean;
}

export function describeMissing(rows: MissingTool[]): void {
  describe.skipIf(!isRoot || !canHide() || pathsOf(["runc", "crun"]).length === 0).each(rows)(
    "without $lacks and with $args",
    ({ lacks, args = ["--sandbox=auto"], says, node, hasNames }) => {
      const platform = new Platform({ args: ["--no-example", ...args], prefix: without(lacks) });
      beforeAll(() => platform.start());
      afterAll(() => platform.remove());

      test("the first lines say what there is, and that is what works", async () => {
        const lines = platform.output.replaceAll(/\s+/g, " ");
        expect(lines).toMatch(says);
        const kind = "get nodes -o jsonpath={.items[0].status.nodeInfo.containerRuntimeVersion}";
        expect(await platform.k(kind)).toMatch(node);
        const functions: [string, string][] = [
          ["callee", "exports.main = () => 'hi';"],
          ["caller", caller],
        ];
        for (const [name, source] of functions)
          await platform.k("apply -f -", functionManifest(name, source));
        for (const [name] of functions)
          await platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
        const { status, body } = await platform.call("caller.default");
        if (hasNames) expect({ status, body }).toEqual({ status: 200, body: "hi" });
        else expect(status).toBe(500);
      });
    },
  );
}
