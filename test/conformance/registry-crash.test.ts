/** A registry that is killed (SIGKILL) in the middle of pushes and of cleanings, at seeded moments. */
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createRegistry } from "@spry/image";
import { endChild, rounds } from "@spry/test-kit";
import { expect, onTestFinished, test } from "vitest";
import { cleanEnvironment, root } from "../support/platform.ts";

const kills = {
  pushes: rounds({ quick: 6, full: 50 }),
  cleanings: rounds({ quick: 5, full: 20 }),
};
const program = path.join(root, "test/support/registry-process.ts");
const digestOf = (content: string | Uint8Array) =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`;

/** Numbers that look random and are the same each time. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 48271) % 2147483647;
    return state % below;
  };
}

function bytes(size: number, random: (below: number) => number): Uint8Array<ArrayBuffer> {
  const content = new Uint8Array(size);
  for (let at = 0; at < size; at += 97) content[at] = random(256);
  return content;
}

function scratch(): string {
  const dir = mkdtempSync(path.join(tmpdir(), "spry-crash-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function start(...args: string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [program, ...args], {
    stdio: ["ignore", "pipe", "inherit"],
    env: cleanEnvironment(),
  });
  const [line] = (await once(child.stdout ?? child, "data")) as [Buffer];
  return { child, url: `http://127.0.0.1:${parseInt(line.toString(), 10)}` };
}

interface Image {
  digest: string;
  blobs: string[];
}

/** Pushes an image of two blobs, one in a single request and one in chunks; throws when the registry dies. */
async function push(
  url: string,
  tag: string,
  random: (below: number) => number,
  onAnswer: () => void = () => {},
): Promise<Image> {
  const repository = `${url}/v2/ns-fn`;
  const answered = async (request: Promise<Response>) => {
    const answer = await request;
    if (!answer.ok) throw new Error(`${answer.status} ${await answer.text()}`);
    onAnswer();
    return answer;
  };
  const config = bytes(1000 + random(1000), random);
  const layer = bytes(100_000 + random(400_000), random);
  const query = `?digest=${digestOf(config)}`;
  await answered(fetch(`${repository}/blobs/uploads/${query}`, { method: "POST", body: config }));
  const opened = await answered(fetch(`${repository}/blobs/uploads/`, { method: "POST" }));
  const upload = url + (opened.headers.get("location") ?? "");
  const half = layer.length >> 1;
  await answered(fetch(upload, { method: "PATCH", body: layer.slice(0, half) }));
  await answered(
    fetch(`${upload}?digest=${digestOf(layer)}`, { method: "PUT", body: layer.slice(half) }),
  );
  const entry = (content: Uint8Array) => ({
    mediaType: "application/octet-stream",
    digest: digestOf(content),
    size: content.length,
  });
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const body = JSON.stringify({
    schemaVersion: 2,
    mediaType,
    config: entry(config),
    layers: [entry(layer)],
  });
  const headers = { "content-type": mediaType };
  await answered(fetch(`${repository}/manifests/${tag}`, { method: "PUT", headers, body }));
  return { digest: digestOf(body), blobs: [digestOf(config), digestOf(layer)] };
}

/** What the registry has under this path: undefined, or exactly what the digest says. */
async function content(url: string, kind: "manifests" | "blobs", digest: string) {
  const answer = await fetch(`${url}/v2/ns-fn/${kind}/${digest}`);
  const body = new Uint8Array(await answer.arrayBuffer());
  if (answer.status === 404) return undefined;
  expect([answer.status, digestOf(body)]).toEqual([200, digest]);
  return digest;
}

async function expectWhole(url: string, { digest, blobs }: Image): Promise<void> {
  expect(await content(url, "manifests", digest)).toBe(digest);
  for (const blob of blobs) expect(await content(url, "blobs", blob)).toBe(blob);
}

test(
  `killed in the middle of pushes, ${kills.pushes} times, it serves all that was acknowledged and nothing torn`,
  { timeout: 400_000 },
  async () => {
    const dir = scratch();
    const random = seeded(4711);
    const acknowledged: Image[] = [];
    for (let point = 0; point < kills.pushes; point++) {
      const { child, url } = await start(dir);
      const fresh: Image[] = [];
      // By what has been answered, not by time: a machine may be slow, and other requests are always under way.
      let left = random(40);
      const { promise: struck, resolve: strike } = Promise.withResolvers<void>();
      const onAnswer = () => void (--left < 0 && strike());
      const lanes = Array.from({ length: 3 }, async (_, lane) => {
        const own = seeded(1 + point * 3 + lane);
        for (let n = 0; ; n++) fresh.push(await push(url, `v${point}-${lane}-${n}`, own, onAnswer));
      });
      const pushing = Promise.allSettled(lanes);
      await struck;
      await endChild(child);
      await pushing;
      acknowledged.push(...fresh);

      const again = createRegistry({ dir });
      const server = await again.listen({ host: "127.0.0.1", port: 0 });
      const now = `http://127.0.0.1:${server.port}`;
      expect(readdirSync(path.join(dir, "scratch"))).toEqual([]);
      for (const image of fresh) await expectWhole(now, image);
      // What was not acknowledged is there as a whole, or not at all.
      const listed = await fetch(`${now}/v2/ns-fn/tags/list`);
      const { tags = [] } = (await listed.json()) as { tags?: string[] };
      for (const tag of tags.filter((each) => each.startsWith(`v${point}-`))) {
        const manifest = await fetch(`${now}/v2/ns-fn/manifests/${tag}`);
        expect(manifest.status).toBe(200);
        const { config, layers } = (await manifest.json()) as Record<string, { digest: string }> & {
          layers: { digest: string }[];
        };
        for (const blob of [config, ...layers])
          expect(await content(now, "blobs", blob?.digest ?? "")).toBeDefined();
      }
      await server.close();
      await again.close();
    }
    expect(acknowledged.length).toBeGreaterThan(kills.pushes / 5);
  },
);

test(
  `killed in the middle of a cleaning, ${kills.cleanings} times, it has lost nothing that is in use`,
  { timeout: 400_000 },
  async () => {
    const model = scratch();
    const random = seeded(815);
    const key = () => digestOf(String(random(1_000_000))).slice("sha256:".length);
    const full = createRegistry({ dir: model });
    const server = await full.listen({ host: "127.0.0.1", port: 0 });
    const images: Image[] = [];
    const url = `http://127.0.0.1:${server.port}`;
    for (let n = 0; n < 60; n++) images.push(await push(url, key(), random));
    await server.close();
    await full.close();
    const used = images.filter((_, n) => n % 3 === 0);
    const references = used.map(({ digest }) => `ns-fn@${digest}`);
    let unfinished = 0;
    for (let point = 0; point < kills.cleanings; point++) {
      const dir = path.join(scratch(), "registry");
      cpSync(model, dir, { recursive: true });
      const { child } = await start(dir, JSON.stringify({ references, functions: [] }));
      let cleaned = false;
      child.stdout?.on("data", () => (cleaned = true));
      await new Promise((resolve) => setTimeout(resolve, random(40)));
      await endChild(child);
      if (!cleaned) unfinished++;
      const again = createRegistry({
        dir,
        clock: { now: () => Date.now() + 3_600_000, elapsed: () => performance.now() },
      });
      expect(await again.clean({ references, functions: [] })).toBeDefined();
      const listener = await again.listen({ host: "127.0.0.1", port: 0 });
      const now = `http://127.0.0.1:${listener.port}`;
      const tags = (await (await fetch(`${now}/v2/ns-fn/tags/list`)).json()) as { tags: string[] };
      expect(tags.tags.length).toBe(used.length);
      for (const image of used) await expectWhole(now, image);
      await listener.close();
      await again.close();
    }
    expect(unfinished).toBeGreaterThan(0);
  },
);
