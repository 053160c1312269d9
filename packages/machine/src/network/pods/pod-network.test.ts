import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { silentLogger } from "@spry/kube";
import { describe, expect, test } from "vitest";
import { why } from "../../sandbox/oci/testing.ts";
import { AddressBlock } from "./address-block.ts";
import { PodNetwork } from "./pod-network.ts";

/** Data directories whose platforms would like to have the same block of addresses. */
function rivals(count: number): string[] {
  const found: string[] = [];
  for (let index = 0; found.length < count; index++) {
    const dataDir = `/nonexistent/pod-network-${process.pid}/${index}`;
    const hash = createHash("sha256").update(dataDir).digest();
    if (new AddressBlock(hash.readUInt16BE(8)).number === 7) found.push(dataDir);
  }
  return found;
}

describe.skipIf(why !== "")(`networks of Pods${why}`, () => {
  test("no line of the rules is a shell's", async () => {
    const [dataDir = ""] = rivals(1);
    const network = await PodNetwork.open({ dataDir, log: silentLogger });
    const file = path.join(mkdtempSync(path.join(tmpdir(), "pod-network-")), "made");
    try {
      await expect(network.applyRules(`# rules\nEND\ntouch ${file}`)).rejects.toThrow(
        "syntax error",
      );
      expect(existsSync(file)).toBe(false);
    } finally {
      await network.close();
      rmSync(path.dirname(file), { recursive: true });
    }
  });

  test("platforms that start at the same time get blocks of their own", async () => {
    const opening = rivals(3).map((dataDir) => PodNetwork.open({ dataDir, log: silentLogger }));
    const opened = await Promise.allSettled(opening);
    for (const each of opened) if (each.status === "fulfilled") await each.value.close();
    const blocks = opened.map((each) =>
      each.status === "fulfilled" ? each.value.block.cidr : each,
    );
    expect(blocks).toEqual(blocks.filter((each) => typeof each === "string"));
    expect(new Set(blocks).size).toBe(3);
  });
});
