/** A registry for tests of what time does to it. */
import { expect } from "vitest";
import { digestOf, mediaTypes, type RegistryOptions } from "../index.ts";
import { startRegistry } from "./registry.ts";

export const hour = 3_600_000;

export type Old = Awaited<ReturnType<typeof oldRegistry>>;

/** A registry in which time passes with `elapse` alone, and by `aheadMs` after each manifest. */
export async function oldRegistry(options: Partial<RegistryOptions> & { aheadMs?: number } = {}) {
  const { aheadMs = hour, ...rest } = options;
  let now = Date.parse("2026-01-01");
  const elapse = (ms: number) => void (now += ms);
  const clock = { now: () => now, elapsed: () => now };
  const started = await startRegistry({ clock, ...rest });
  const { url } = started;

  async function putBlob(repository: string, text: string) {
    const digest = digestOf(text);
    const uploads = `${url}/v2/${repository}/blobs/uploads/?digest=${digest}`;
    const answer = await fetch(uploads, { method: "POST", body: text });
    return { answer, descriptor: { mediaType: mediaTypes.layer, digest, size: text.length } };
  }
  async function putManifest(repository: string, tag: string | undefined, content: object) {
    const mediaType = "manifests" in content ? mediaTypes.index : mediaTypes.manifest;
    const body = JSON.stringify({ schemaVersion: 2, mediaType, ...content });
    const digest = digestOf(body);
    const answer = await fetch(`${url}/v2/${repository}/manifests/${tag ?? digest}`, {
      method: "PUT",
      headers: { "content-type": mediaType },
      body,
    });
    expect(answer.status).toBe(201);
    elapse(aheadMs);
    return { mediaType, digest, size: body.length };
  }
  /** An image whose only layer has this text. */
  async function putImage(repository: string, tag: string | undefined, text = `${tag}`) {
    const { descriptor: config } = await putBlob(repository, "{}");
    const { descriptor: layer } = await putBlob(repository, text);
    return putManifest(repository, tag, { config, layers: [layer] });
  }
  const has = async (repository: string, digest: string, kind = "manifests") =>
    (await fetch(`${url}/v2/${repository}/${kind}/${digest}`, { method: "HEAD" })).status === 200;
  const tagsOf = async (repository: string) => {
    const answer = await fetch(`${url}/v2/${repository}/tags/list`);
    return answer.ok ? ((await answer.json()) as { tags: string[] }).tags : undefined;
  };
  return { ...started, putBlob, putImage, putManifest, has, tagsOf, elapse };
}

/** A build key, as tags of Functions' images are. */
export const key = (n: number) => n.toString(16).repeat(64).slice(0, 64);
