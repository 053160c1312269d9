/** A platform starts without each of the programs that a stronger sandbox needs. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
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

describe.skipIf(!canHidePrograms())("nftables is installed between two starts", () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), "spry-"));
  const args = ["--no-example", "--sandbox=oci"];
  const before = new Platform({ dataDir, args, prefix: without(["nft"]) });
  const after = new Platform({ dataDir, args });
  afterAll(() => after.remove());

  test("Pods get networks of their own, and call each other by name", async () => {
    await before.start();
    const functions = { callee: "exports.main = () => 'hi';", caller };
    for (const [name, source] of Object.entries(functions))
      await before.k("apply -f -", functionManifest(name, source));
    for (const name of Object.keys(functions))
      await before.k(`wait --for=condition=Running function/${name} --timeout=60s`);
    await before.kill();
    await after.start();
    await after.callUntil("caller.default", ({ body }) => body === "hi");
    const addresses = await after.k(
      "get pods --field-selector=status.phase=Running -o jsonpath={.items[*].status.podIP}",
    );
    expect(addresses).not.toContain("127.");
  });
});
