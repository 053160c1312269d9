/** Machines that lack a program: what the first lines promise is what works. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform } from "./platform.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
const pathsOf = (names: string[]) =>
  names.flatMap((name) => dirs.map((dir) => `${dir}/${name}`)).filter(existsSync);

/** Starts a program on a machine that seems not to have these: in mounts of its own, their directories are shown without them. */
export function without(names: string[]): [string, ...string[]] {
  const files = [
    ...new Set(
      pathsOf(names).map((file) => realpathSync(path.dirname(file)) + `/${path.basename(file)}`),
    ),
  ];
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-without-"));
  const hide = [...new Set(files.map((file) => path.dirname(file)))].flatMap((dir, index) => {
    const [upper, work] = [`${scratch}/${index}-upper`, `${scratch}/${index}-work`];
    const own = files.filter((file) => path.dirname(file) === dir);
    return [
      `mkdir ${upper} ${work}`,
      // The mark of a file that is deleted in an overlay.
      ...own.map((file) => `mknod ${upper}/${path.basename(file)} c 0 0`),
      `mount -t overlay -o lowerdir=${dir},upperdir=${upper},workdir=${work} overlay ${dir}`,
    ];
  });
  const inMemory = `mount -t tmpfs tmpfs ${scratch}`;
  return [
    "unshare",
    "--mount",
    "sh",
    "-c",
    `set -e; ${[inMemory, ...hide].join("; ")}; exec "$@"`,
    "sh",
  ];
}

/** Whether this machine has what these tests need: an administrator, a runtime, and mounts of a process's own. */
export function canHidePrograms(): boolean {
  if (!isRoot || pathsOf(["runc", "crun"]).length === 0) return false;
  try {
    execFileSync("unshare", ["--mount", "true"]);
    return true;
  } catch {
    return false;
  }
}

/** Calls a Service by its name, and publishes an event. */
export const caller = `exports.main = async (event) => {
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
  describe.skipIf(!canHidePrograms()).each(rows)(
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
