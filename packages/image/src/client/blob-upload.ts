import { type Digest } from "../digest.ts";
import { type ImageName } from "../image-name.ts";
import { type Body } from "./http.ts";
import { type RegistryConnection } from "./registry-connection.ts";
import { isNotFound } from "./registry-error.ts";

/** Up to this size a blob goes out with the request that opens the upload. */
const singleRequestLimit = 256 * 1024;
/** From this size on, a broken upload continues where it broke, for one request more. */
const resumableSize = 8 * 1024 * 1024;

/** Sends a blob, and after what may pass sends it again, a large one from where it broke. */
export function uploadBlob(
  connection: RegistryConnection,
  name: ImageName,
  digest: Digest,
  body: Body,
): Promise<void> {
  const scopes = [`repository:${name.repository}:pull,push`];
  const octets = { "content-type": "application/octet-stream" };
  let resume: URL | undefined;

  return connection.retry(async () => {
    if (body.size >= resumableSize) return sendResumably();
    const single = body.size <= singleRequestLimit;
    const opened = await open(single ? body : undefined);
    // Some registries do not take it in one request and open an upload as if nothing were there.
    if (opened) await close(opened, body);
  });

  /** Undefined when the registry took the whole blob at once. */
  async function open(content: Body | undefined): Promise<URL | undefined> {
    const query = content ? `?digest=${encodeURIComponent(digest)}` : "";
    const opened = await connection.request("POST", name, `blobs/uploads/${query}`, {
      headers: content ? octets : { "content-length": 0 },
      ...(content ? { body: content } : {}),
      expect: [202, 201],
      scopes,
    });
    opened.resume();
    return opened.statusCode === 201 ? undefined : connection.locationOf(name, opened);
  }

  async function close(upload: URL, content?: Body): Promise<void> {
    upload.searchParams.set("digest", digest);
    const closed = await connection.request("PUT", name, upload, {
      headers: content ? octets : { ...octets, "content-length": 0 },
      ...(content ? { body: content } : {}),
      expect: [201],
      scopes,
    });
    closed.resume();
  }

  async function sendResumably(): Promise<void> {
    const known = resume && (await progressOf(resume));
    let upload = known?.upload ?? (await open(undefined));
    const sent = known?.sent ?? 0;
    if (!upload) return;
    resume = upload;
    if (sent < body.size) {
      const answer = await connection.request("PATCH", name, upload, {
        headers: { ...octets, "content-range": `${sent}-${body.size - 1}` },
        body: sent === 0 ? body : restOf(body, sent),
        expect: [202],
        scopes,
      });
      answer.resume();
      upload = connection.locationOf(name, answer);
      resume = upload;
    }
    await close(upload);
  }

  /** How far an upload has come; undefined when the registry has forgotten it. */
  async function progressOf(upload: URL): Promise<{ upload: URL; sent: number } | undefined> {
    try {
      const answer = await connection.request("GET", name, upload, { expect: [204], scopes });
      answer.resume();
      const last = /^(?:bytes=)?0-(\d{1,15})$/.exec(answer.headers.range ?? "")?.[1];
      // `0-0` means one byte or none: sending that byte again would be wrong, starting over never is.
      const sent = Number(last ?? 0) + 1;
      return sent > 1 && sent <= body.size
        ? { upload: connection.locationOf(name, answer), sent }
        : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

/** Content without its first bytes. */
function restOf(body: Body, from: number): Body {
  return {
    size: body.size - from,
    open() {
      const content = body.open();
      return content instanceof Uint8Array ? content.subarray(from) : skip(content, from);
    },
  };
}

async function* skip(
  content: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<Uint8Array> {
  let left = bytes;
  for await (const chunk of content) {
    if (left < chunk.length) yield left > 0 ? chunk.subarray(left) : chunk;
    left = Math.max(0, left - chunk.length);
  }
}
