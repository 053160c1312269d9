/** A disk without space: writes are refused one by one, with a Status; reads go on; space makes all good again. */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { KubeClient, resources, StatusError } from "@spry/kube";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createApiServer } from "../api-server.ts";

const reason =
  process.platform !== "linux" || process.getuid?.() !== 0
    ? "mounting a file system needs root on Linux"
    : undefined;
const scratch = mkdtempSync(path.join(tmpdir(), "full-disk-"));
const disk = path.join(scratch, "disk");

beforeAll(() => {
  mkdirSync(disk);
  if (!reason) execFileSync("mount", ["-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]);
});
afterAll(() => {
  if (!reason) execFileSync("umount", ["-l", disk]);
  rmSync(scratch, { recursive: true });
});

const text = "x".repeat(50_000);
const configMap = (name: string) => ({
  metadata: { name, namespace: "default" },
  data: { text: `${name}${text}` },
});
const refusalOf = async (write: Promise<unknown>) => {
  const error: unknown = await write.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  return error instanceof StatusError ? [error.code, error.status.reason, error.message] : error;
};

test.skipIf(reason !== undefined)(
  `a full disk ends each write with a Status 507, loses nothing, and is over as soon as there is space${reason ? ` (skipped: ${reason})` : ""}`,
  async () => {
    const dataDir = path.join(disk, "api");
    const api = await createApiServer({ dataDir });
    const client = new KubeClient(api.transport());
    const acknowledged: string[] = [];
    for (let i = 0; i < 5; i++) {
      await client.create(resources.configMaps, configMap(`before-${i}`));
      acknowledged.push(`before-${i}`);
    }
    const filler = path.join(disk, "filler");
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, Buffer.alloc(bavail * bsize));

    const refusal = [
      507,
      "InsufficientStorage",
      expect.stringMatching(/disk that holds the store .*state\.db is full: free space/),
    ];
    for (let i = 0; i < 10; i++) {
      expect(await refusalOf(client.create(resources.configMaps, configMap(`full-${i}`)))).toEqual(
        refusal,
      );
    }
    const before = { namespace: "default", name: "before-0" };
    expect(
      await refusalOf(client.patch(resources.configMaps, before, { data: { more: text } })),
    ).toEqual(refusal);
    // Many at a time, as from controllers.
    const many = Array.from({ length: 20 }, (_, i) =>
      refusalOf(client.create(resources.configMaps, configMap(`many-${i}`))),
    );
    for (const each of await Promise.all(many)) expect(each).toEqual(refusal);
    const names = async (from: KubeClient) =>
      (await from.list(resources.configMaps, { namespace: "default" })).items
        .map(({ metadata }) => metadata.name ?? "")
        .filter((name) => name !== "kube-root-ca.crt")
        .sort();
    expect(await names(client)).toEqual(acknowledged);

    rmSync(filler);
    await client.create(resources.configMaps, configMap("after"));
    acknowledged.unshift("after");
    await api.close();
    const again = await createApiServer({ dataDir });
    expect(await names(new KubeClient(again.transport()))).toEqual(acknowledged);
    await again.close();
  },
);
