/** The platform of a user who is not root and has no privileges. */
import { spawnSync } from "node:child_process";
import { chownSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform, root } from "../support/platform.ts";

/** `nobody`, who is in every system's list of users. */
const uid = 65_534;

function whyNot(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) {
    return "only root can start it as another user; all other tests run as this user";
  }
  if (process.env["SPRY_TEST_SANDBOX"] === "oci") return "the sandbox `oci` needs root";
  const read = ["-e", "fs.readdirSync(process.argv[1])", path.join(root, "node_modules")];
  const { status } = spawnSync(process.execPath, read, { uid, gid: uid });
  return status === 0 ? undefined : `only its owner may read ${root}`;
}

const reason = whyNot();

describe.skipIf(reason !== undefined)(
  `an ordinary user${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    const home = mkdtempSync(path.join(tmpdir(), "user-"));
    const dataDir = path.join(home, "data");
    const platform = new Platform({ dataDir, uid, env: { HOME: home } });

    beforeAll(async () => {
      mkdirSync(dataDir);
      for (const each of [home, dataDir]) chownSync(each, uid, uid);
      // A first start makes them in the checkout, which is root's here.
      const make =
        'import("./packages/cli/bin/programs.mjs").then((made) => made.ensurePrograms())';
      expect(spawnSync(process.execPath, ["-e", make], { cwd: root }).status).toBe(0);
      await platform.start();
    });
    afterAll(async () => {
      await platform.stop();
      rmSync(home, { recursive: true });
    });

    test("gets a Function with packages, edits it, and looks into it", async () => {
      const source = (text: string) =>
        `const isNumber = require("is-number");
         module.exports = { main: () => "${text} " + isNumber(1) + " " + process.getuid() };`;
      const dependencies = JSON.stringify({ dependencies: { "is-number": "7.0.0" } });
      const apply = (text: string) =>
        platform.k("apply -f -", functionManifest("own", source(text), { dependencies }));
      await apply("first");
      await platform.callUntil("own.default", ({ body }) => body === `first true ${uid}`);
      await apply("second");
      await platform.callUntil("own.default", ({ body }) => body === `second true ${uid}`);
      expect((await platform.k("exec deploy/own -- id -u")).trim()).toBe(String(uid));
      expect(await platform.k("top node --no-headers")).toMatch(/^spry /);
    });

    test("keeps it over kill -9", async () => {
      await platform.kill();
      await platform.start();
      await platform.callUntil("own.default", ({ body }) => body === `second true ${uid}`);
      await platform.k("delete function own --timeout=60s");
    });
  },
);
