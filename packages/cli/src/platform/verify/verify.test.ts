/** What a look at a data directory finds: each kind of damage by its name, and nothing where all is well. */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Readable } from "node:stream";
import { createApiServer } from "@spry/apiserver";
import { createLayer, digestOf, unpackLayer } from "@spry/image";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { verifyAll } from "../../commands/doctor.ts";
import { ensureCertificates } from "../certificates.ts";
import { type DataDir, openDataDir } from "../data-dir.ts";

let template = "";
let dataDir: DataDir;
/** Below the data directory. */
let layerFile = "";
let rootDir = "";
beforeAll(async () => {
  dataDir = openDataDir(mkdtempSync(path.join(tmpdir(), "verify-")));
  template = dataDir.root;
  await (await createApiServer({ dataDir: dataDir.api })).close();
  await ensureCertificates(dataDir.pki);
  writeFileSync(dataDir.kubeconfig, "secret", { mode: 0o600 });
  const layer = await createLayer([{ path: "app/handler.js", content: "module.exports = 1;" }]);
  const content = layer.body?.open() as Uint8Array;
  layerFile = writeBlob(layer.descriptor.digest, content);
  const manifest = JSON.stringify({ schemaVersion: 2, layers: [layer.descriptor] });
  const image = digestOf(manifest);
  writeBlob(image, manifest);
  rootDir = path.join("node/images", image.slice("sha256:".length), "rootfs");
  mkdirSync(path.join(template, rootDir), { recursive: true });
  await unpackLayer(Readable.from([content]), path.join(template, rootDir));
  dataDir.unlock();
});
afterAll(() => rmSync(template, { recursive: true }));
beforeEach(() => {
  const root = mkdtempSync(path.join(tmpdir(), "verify-"));
  cpSync(template, root, { recursive: true });
  // Modes of directories are not copied.
  chmodSync(path.join(root, "api"), 0o700);
  dataDir = openDataDir(root);
});
afterEach(() => {
  dataDir.unlock();
  rmSync(dataDir.root, { recursive: true });
});

const at = (name: string) => path.join(dataDir.root, name);

function writeBlob(digest: string, content: string | Uint8Array): string {
  const hex = digest.slice("sha256:".length);
  const file = path.join(dataDir.registry, "blobs/sha256", hex.slice(0, 2), hex);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
  return path.relative(template, file);
}

async function looked(): Promise<{ lines: string; error: string | undefined }> {
  const lines: string[] = [];
  const error = await verifyAll(dataDir, (line) => lines.push(line)).then(
    () => undefined,
    (cause: Error) => cause.message,
  );
  return { lines: lines.join("\n"), error };
}

test("nothing is wrong with a directory as a platform left it", async () => {
  const { lines, error } = await looked();
  expect(error).toBe(undefined);
  expect(lines).not.toContain("✘");
  expect(lines).toMatch(/store: \d{2,} objects/);
  expect(lines).toContain("certificates: 8");
  expect(lines).toContain("registry: 2 files by digest");
  expect(lines).toContain("unpacked images: 1 compared");
});

test("nor with one in which nothing was started yet", async () => {
  for (const dir of [dataDir.api, dataDir.pki, dataDir.registry, dataDir.node]) {
    rmSync(dir, { recursive: true });
  }
  rmSync(dataDir.kubeconfig);
  expect((await looked()).error).toBe(undefined);
});

test.each<[string, () => void, RegExp]>([
  [
    "a shortened store",
    () => truncateSync(path.join(dataDir.api, "state.db"), 8192),
    /✘ store: .*state\.db is damaged[^]*spry restore/,
  ],
  ["a store that is gone", () => rmSync(path.join(dataDir.api, "state.db")), /✘ store: /],
  [
    "a certificate that is gone",
    () => rmSync(path.join(dataDir.pki, "gateway.crt")),
    /✘ certificate gateway: it is missing/,
  ],
  [
    "a broken certificate",
    () => truncateSync(path.join(dataDir.pki, "webhook.crt"), 40),
    /✘ certificate webhook: it cannot be read/,
  ],
  [
    "a kubeconfig that others may read",
    () => chmodSync(dataDir.kubeconfig, 0o644),
    /✘ kubeconfig: others may read it \(mode 0644\)\n    chmod 600 /,
  ],
  [
    "a shortened layer in the registry",
    () => truncateSync(at(layerFile), 10),
    /✘ registry content sha256:[0-9a-f]{64}: .* does not match its digest/,
  ],
  [
    "an altered file of an unpacked image",
    () => writeFileSync(at(`${rootDir}/app/handler.js`), "evil"),
    /✘ unpacked image sha256:[0-9a-f]{64}: \/app\/handler\.js differs from the image/,
  ],
  [
    "a file that an unpacked image lacks",
    () => rmSync(at(`${rootDir}/app/handler.js`)),
    /\/app\/handler\.js is missing/,
  ],
])("%s is named, with the way out", async (_what, harm, line) => {
  harm();
  const { lines, error } = await looked();
  expect(lines).toMatch(line);
  expect(error).toMatch(/has \d+ problems?, named above$/);
});
