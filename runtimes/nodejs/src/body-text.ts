import { isUtf8 } from "node:buffer";
import { charsetOf } from "./media-type.ts";
import { RequestError } from "./request-error.ts";

/**
 * The text that a body is, decoded as the web does (Encoding, section 6): by a byte order mark, which is taken away; else by the
 * content type's charset; else as UTF-8. What is no character becomes U+FFFD, or with `isStrict` is refused. Throws a `RequestError`.
 */
export function decodeText(body: Buffer, contentType?: string, isStrict = false): string {
  const { encoding, start } = encodingOf(body, contentType);
  const bytes = start === 0 ? body : body.subarray(start);
  switch (encoding) {
    case "utf-8":
      if (isStrict && !isUtf8(bytes)) throw new RequestError(400, "the request body is not UTF-8");
      return bytes.toString("utf8");
    case "latin1":
      return bytes.toString("latin1");
  }
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(encoding, { fatal: isStrict, ignoreBOM: true });
  } catch {
    throw new RequestError(415, `unsupported charset ${encoding.slice(0, 40)}`);
  }
  try {
    return decoder.decode(bytes);
  } catch {
    throw new RequestError(400, `the request body is not ${encoding}`);
  }
}

function encodingOf(body: Buffer, contentType: string | undefined) {
  const [first, second, third] = body;
  if (first === 0xef && second === 0xbb && third === 0xbf) return { encoding: "utf-8", start: 3 };
  if (first === 0xff && second === 0xfe) return { encoding: "utf-16le", start: 2 };
  if (first === 0xfe && second === 0xff) return { encoding: "utf-16be", start: 2 };
  const charset = charsetOf(contentType);
  return { encoding: aliases.get(charset) ?? charset, start: 0 };
}

/** Browsers take Latin 1 for windows-1252; its bytes are the first 256 characters (RFC 1345). */
const aliases = new Map([
  ["utf8", "utf-8"],
  ["us-ascii", "utf-8"],
  ["ascii", "utf-8"],
  ["iso-8859-1", "latin1"],
  ["iso8859-1", "latin1"],
  ["iso_8859-1", "latin1"],
  ["l1", "latin1"],
  ["utf16", "utf-16le"],
  ["utf-16", "utf-16le"],
]);
