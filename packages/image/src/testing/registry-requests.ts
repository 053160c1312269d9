/** Requests to a registry, as a client makes them. */
import { expect } from "vitest";
import { digestOf, mediaTypes } from "../index.ts";

export const content = Buffer.from("0123456789");
/** Of that content. */
export const digest = digestOf(content);
/** Of something that no registry has. */
export const other = digestOf("other");

/** Sends a blob; its descriptor. */
export async function put(url: string, repository: string, bytes: Buffer = content) {
  const query = `digest=${digestOf(bytes)}`;
  const answer = await fetch(`${url}/v2/${repository}/blobs/uploads/?${query}`, {
    method: "POST",
    body: new Uint8Array(bytes),
  });
  expect(answer.status).toBe(201);
  return { mediaType: mediaTypes.layer, digest: digestOf(bytes), size: bytes.length };
}

/** Sends a manifest as it is given, with the answer whatever that is. */
export async function putManifest(
  url: string,
  repository: string,
  reference: string,
  manifest: object,
  type: string = mediaTypes.manifest,
) {
  const body = JSON.stringify({ schemaVersion: 2, mediaType: type, ...manifest });
  const answer = await fetch(`${url}/v2/${repository}/manifests/${reference}`, {
    method: "PUT",
    headers: { "content-type": type },
    body,
  });
  return { answer, digest: digestOf(body), body };
}

/** `<status> <error code>` */
export async function codeOf(answer: Response): Promise<string> {
  const { errors } = (await answer.json()) as { errors: { code: string; message: string }[] };
  expect(errors[0]?.message).toBeTruthy();
  return `${answer.status} ${errors[0]?.code}`;
}
