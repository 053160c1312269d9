/** Why an image cannot be had. The message holds nothing of what a registry has sent, so that it can be shown to everyone. */
export class ImageError extends Error {
  override readonly name = "ImageError";
}

/** Reads JSON. A parser's own message would quote the text. Throws an `ImageError` that names `what`. */
export function parseJson(bytes: Buffer, what: string): unknown {
  try {
    return JSON.parse(bytes.toString()) as unknown;
  } catch {
    throw new ImageError(`${what} is not JSON`);
  }
}
