/** A platform starts without each of the programs that a stronger sandbox needs. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { Load } from "../support/load.ts";
import { caller, canHidePrograms, describeMissing, without } from "../support/missing-tools.ts";
import { functionManifest, Platform } from "../support/platform.ts";

describeMissing([
  {
    lacks: ["nft"],
    args: ["--sandbox=oci"],
    says: /oci: [^]*share this machine's network, Functions know no Service by its name, and NetworkPolicies are not kept, because nft is missing: install\s+nftables/,
    node: /^oci:/,
    hasNames: false,
  },
  {
    lacks: ["ip"],
    says: /process: [^]*ip is missing: install iproute2/,
    node: /^process:/,
    hasNames: true,
  },
  {
    lacks: ["runc", "crun"],
    says: /process: [^]*oci, cannot be used: /,
    node: /^process:/,
    hasNames: true,
  },
]);

describeMissing(
  [["unshare"], ["git"], ["python3"]].map((lacks) => ({
    lacks,
    says: /oci: each container has its own/,
    node: /^oci:/,
    hasNames: true,
  })),
);

describe.skipIf(!canHidePrograms()).each([
  { change: "installed", lackedBefore: ["nft"], lackedAfter: [], own: true },
  { change: "removed", lackedBefore: [], lackedAfter: ["nft"], own: false },
])("nftables is $change between two starts", ({ lackedBefore, lackedAfter, own }) => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "spry-"));
  const args = ["--no-example", "--sandbox=oci"];
  const before = new Platform({ dataDir, args, prefix: without(lackedBefore) });
  const after = new Platform({ dataDir, args, prefix: without(lackedAfter) });
  afterAll(() => after.remove());

  test("Pods get the other network one by one, and no request is lost", async () => {
    await before.start();
    const functions = { callee: "exports.main = () => 'hi';", caller };
    for (const [name, source] of Object.entries(functions)) {
      const twice = { scaleConfig: { minReplicas: 2, maxReplicas: 2 } };
      await before.k("apply -f -", functionManifest(name, source, twice));
    }
    for (const name of Object.keys(functions))
      await before.k(`wait --for=condition=Running function/${name} --timeout=60s`);
    await before.k("run bare --image=registry.spry.localhost/spry/nodejs24 --command -- sleep 300");
    await before.k("wait --for=condition=Ready pod/bare --timeout=60s");
    await before.kill();
    await after.start();
    // The gateway was started again, too: it listens at the address that Pods now know of the machine.
    const load = new Load(after.gateway, "callee.default.localhost");
    load.start(50);
    if (own) await after.callUntil("caller.default", ({ body }) => body === "hi");
    const addresses = async () =>
      (
        await after.k(
          "get pods --field-selector=status.phase=Running -o jsonpath={.items[*].status.podIP}",
        )
      ).split(" ");
    const isRight = (address: string) => address !== "" && address.startsWith("127.") !== own;
    await expect
      .poll(async () => (await addresses()).map(isRight), { timeout: 60_000 })
      .toEqual([true, true, true, true, true]);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(load.answered).toBeGreaterThan(100);
    const events = await after.k("get events --field-selector reason=SandboxChanged -o name");
    expect(events.trim().split("\n")).toHaveLength(4);
  });
});
