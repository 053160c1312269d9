/**
 * A data directory of an earlier version, whose registry had one login and `<namespace>-<function>` as names: its Functions go on,
 * those whose names were one included, and the old login has ended.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { functionManifest, Platform } from "../support/platform.ts";
import { checkOut, versionBefore } from "../support/previous-version.ts";

const former = versionBefore("packages/image/src/registry/former-names/move-over.ts");
const reason = former ? undefined : "there is no history to take it from";
const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;
const counting = `module.exports = { main: () => String(require("is-number")(3)) };`;
const dependencies = JSON.stringify({ dependencies: { "is-number": "7.0.0" } });
const targets = [
  { namespace: "a", name: "b-c", says: "one" },
  { namespace: "a-b", name: "c", says: "other" },
  { namespace: "default", name: "counts", says: "true" },
];

describe.skipIf(reason)(`a registry of an earlier version${reason ? ` (${reason})` : ""}`, () => {
  const scratch = mkdtempSync(path.join(tmpdir(), "former-"));
  const dataDir = path.join(scratch, "data");
  const checkout = path.join(scratch, "checkout");
  const platform = new Platform({ dataDir });
  let login: { username: string; password: string };

  const answersAll = async () => {
    for (const { namespace, name, says } of targets)
      await platform.callUntil(`${name}.${namespace}`, ({ body }) => body === says);
  };
  const pods = (namespace: string) =>
    platform.k(`get pods -n ${namespace} -o jsonpath={.items[*].metadata.uid}`);
  const imageOf = ({ namespace, name }: { namespace: string; name: string }) =>
    platform.k(
      `get deployment ${name} -n ${namespace} -o jsonpath={.spec.template.spec.containers[0].image}`,
    );

  beforeAll(async () => {
    checkOut(former ?? "", checkout);
    const before = new Platform({ dataDir, checkout });
    await before.start();
    for (const { namespace } of targets) await before.kubectl(["create", "namespace", namespace]);
    for (const { namespace, name, says } of targets) {
      const source = name === "counts" ? counting : answering(says);
      const spec = name === "counts" ? { dependencies } : {};
      await before.k("apply -f -", functionManifest(name, source, spec, { namespace }));
    }
    for (const { namespace, name, says } of targets)
      await before.callUntil(`${name}.${namespace}`, ({ body }) => body === says);
    login = JSON.parse(readFileSync(path.join(dataDir, "registry.json"), "utf8")) as typeof login;
    // Its Pods go on running.
    await before.kill();
  });
  afterAll(async () => {
    await platform.stop();
    rmSync(scratch, { recursive: true, force: true });
  });

  test("its Pods run on, nothing is built or rolled out", async () => {
    await platform.start();
    const running = await Promise.all(targets.map(({ namespace }) => pods(namespace)));
    await answersAll();
    expect(await Promise.all(targets.map(({ namespace }) => pods(namespace)))).toEqual(running);
    for (const target of targets)
      expect(await imageOf(target)).toMatch(`/${target.namespace}-${target.name}@sha256:`);
    expect(existsSync(path.join(dataDir, "registry/former-names.json"))).toBe(true);
  });

  test("its login has ended", async () => {
    const pair = Buffer.from(`${login.username}:${login.password}`).toString("base64");
    const headers = { authorization: `Basic ${pair}` };
    expect((await fetch(`${platform.endpoints.registry}/v2/`, { headers })).status).toBe(401);
  });

  test("its Functions start again, also with nothing of the images left on the machine", async () => {
    for (const { namespace } of targets) await platform.k(`delete pods --all -n ${namespace}`);
    await answersAll();
    await platform.stop();
    rmSync(path.join(dataDir, "node/images"), { recursive: true });
    await platform.start();
    await answersAll();
  });

  test("an edit is built to the namespace's repository, with the dependencies that it had", async () => {
    const edited = counting.replace("(3)", '("x")');
    await platform.k("apply -f -", functionManifest("counts", edited, { dependencies }));
    await platform.callUntil("counts.default", ({ body }) => body === "false");
    expect(await imageOf({ namespace: "default", name: "counts" })).toMatch("/default/counts@");
    const job = await platform.k(
      "get jobs -l serverless.kyma-project.io/function-name=counts --sort-by=.metadata.creationTimestamp -o name",
    );
    const newest = job.trim().split("\n").at(-1);
    expect(await platform.k(`logs ${newest} --all-containers`)).not.toContain("installing");
  });
});
