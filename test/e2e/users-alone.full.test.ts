/** The platform of root in most containers: no namespaces can be made, and each Pod is a user of its own (docs/security.md). */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform } from "../support/platform.ts";

const without = ["--bounding-set=-sys_admin,-sys_ptrace", "--inh-caps=-sys_admin,-sys_ptrace"];
const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const reason = !isRoot
  ? "needs root"
  : spawnSync("setpriv", [...without, "true"]).status === 0
    ? undefined
    : "needs setpriv";

/** The first id of Pods' users: no list of users has it. */
const firstUser = 0x78_00_00_00;

describe.skipIf(reason !== undefined)(
  `root that cannot make namespaces${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const home = mkdtempSync(path.join(tmpdir(), "root-"));
    const dataDir = path.join(home, "data");
    const platform = new Platform({
      dataDir,
      prefix: ["setpriv", ...without],
      args: ["--no-example", "--sandbox=process"],
    });
    const users: Record<string, string> = {};

    /** Reads what its caller names, and says who it is. */
    const reader = `
      const fs = require("node:fs");
      module.exports = { main: (event) => {
        const { file, pid } = event.extensions.request.query;
        if (pid) try { process.kill(Number(pid), 0); return "signalled"; } catch ({ code }) { return code; }
        if (!file) return require("is-number")(1) + " " + process.getuid() + " " + process.getgroups().length;
        try { return fs.readFileSync(file, "latin1").slice(0, 20); } catch ({ code }) { return code; }
      } };`;
    const dependencies = JSON.stringify({ dependencies: { "is-number": "7.0.0" } });
    const ask = async (name: string, query: string) =>
      (await platform.call(`${name}.default`, { path: `/?${query}` })).body;

    beforeAll(async () => {
      mkdirSync(dataDir);
      // Where other users can pass through, as the documentation says.
      chmodSync(home, 0o711);
      await platform.start();
      for (const name of ["one", "two"])
        await platform.k("apply -f -", functionManifest(name, reader, { dependencies }));
      for (const name of ["one", "two"]) {
        const { body } = await platform.callUntil(
          `${name}.default`,
          ({ status }) => status === 200,
        );
        users[name] = body.split(" ")[1] ?? "";
      }
    });
    afterAll(async () => {
      await platform.stop();
      rmSync(home, { recursive: true });
    });

    test("gives each Function a user of its own, with packages that its build has installed", async () => {
      expect(await platform.k("get nodes -o wide")).toContain("process://users");
      for (const name of ["one", "two"]) {
        expect(Number(users[name])).toBeGreaterThan(firstUser);
        expect((await ask(name, "")).split(" ")[0]).toBe("true");
        expect((await platform.k(`exec deploy/${name} -- id -u`)).trim()).toBe(users[name]);
      }
      expect(users["one"]).not.toBe(users["two"]);
    });

    test("keeps the platform's files and processes, and the other Function's, closed to it", async () => {
      const [pid = ""] = spawnSync("pgrep", ["-u", users["two"] ?? ""])
        .stdout.toString()
        .split("\n");
      expect(Number(pid)).toBeGreaterThan(1);
      for (const file of [
        platform.kubeconfig,
        path.join(dataDir, "registry.json"),
        `/proc/${platform.pid}/environ`,
        `/proc/${pid}/environ`,
      ])
        expect(await ask("one", `file=${encodeURIComponent(file)}`), file).toBe("EACCES");
      expect(await ask("one", `pid=${pid}`)).toBe("EPERM");
      expect(await ask("one", `pid=${platform.pid}`)).toBe("EPERM");
    });

    test("runs Python, reads Secrets and writes to volumes", async () => {
      await platform.k("create secret generic words --from-literal=word=hush");
      // A path is where the Pod's variables say: there is no root directory of its own (docs/adr/0002-process-sandbox.md).
      const source = `import os, tempfile
def main(event, context):
    with tempfile.NamedTemporaryFile("w+") as note:
        note.write("written")
        note.seek(0)
        return open(os.environ["WORD"]).read() + " " + note.read() + " " + str(os.getuid())`;
      const env = [{ name: "WORD", value: "/etc/words/word" }];
      const secretMounts = [{ secretName: "words", mountPath: "/etc/words" }];
      await platform.k(
        "apply -f -",
        functionManifest("py", source, { runtime: "python312", secretMounts, env }),
      );
      const { body } = await platform.callUntil("py.default", ({ status }) => status === 200);
      expect(body).toMatch(/^hush written 2\d{9}$/);
    });

    test("finds its Pods again after kill -9, and leaves nothing of them behind when they are gone", async () => {
      const pids = () =>
        spawnSync("pgrep", ["-u", Object.values(users).join(",")]).stdout.toString();
      const before = pids();
      await platform.crash();
      expect(await ask("one", "")).toContain(users["one"]);
      expect(pids()).toBe(before);
      await platform.k("delete functions --all --timeout=60s");
      await expect.poll(pids).toBe("");
    });
  },
);
