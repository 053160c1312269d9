/** How the bytes of a response are shown: as what they are, and never more than a page can show. */
import { indentJson } from "@spry/kube/browser";
import type { CallAnswer } from "./calls.ts";

export type BodyView = "pretty" | "raw" | "hex" | "picture";

/** Of text, and of bytes as hex: the rest is in the download. */
export const maxShown = { text: 1024 ** 2, hex: 16 * 1024 };

type Body = Pick<CallAnswer, "headers" | "body" | "totalMs">;

const typeOf = ({ headers }: Pick<Body, "headers">): string =>
  headers.find(([name]) => name.toLowerCase() === "content-type")?.[1].trim() ?? "";

const pictures = /^image\/(?:png|jpeg|gif|webp|avif|bmp|svg\+xml|x-icon|vnd\.microsoft\.icon)\b/i;
/** As a part of the page's address for it; larger ones can be downloaded. */
const maxPictureBytes = 4 * 1024 ** 2;

/** The ways in which it can be shown; the first is the usual one. */
export function viewsOf(answer: Body): BodyView[] {
  if (answer.totalMs !== undefined && isPicture(answer)) return ["picture", "hex", "raw"];
  const isJson = answer.totalMs !== undefined && /\bjson\b/i.test(typeOf(answer));
  if (isJson && prettyOf(answer) !== undefined) return ["pretty", "raw", "hex"];
  return isText(answer) ? ["raw", "hex"] : ["hex", "raw"];
}

const isPicture = (answer: Body): boolean =>
  pictures.test(typeOf(answer)) && answer.body.length <= maxPictureBytes && answer.body.length > 0;

/** By the charset that the response names; UTF-8 without one, or where the browser does not know it. */
export function textOf(answer: Body): string {
  const label = /charset\s*=\s*"?([\w.:-]+)/i.exec(typeOf(answer))?.[1] ?? "utf-8";
  return decoderOf(label).decode(answer.body.subarray(0, maxShown.text));
}

function decoderOf(label: string): TextDecoder {
  try {
    return new TextDecoder(label, { ignoreBOM: false });
  } catch {
    return new TextDecoder();
  }
}

/** JSON in lines, with its numbers, names and their order as they came; undefined for a text that is not JSON, or not complete. */
export function prettyOf(answer: Body): string | undefined {
  if (answer.body.length > maxShown.text) return undefined;
  const text = textOf(answer);
  try {
    JSON.parse(text);
    return indentJson(text, 2);
  } catch {
    return undefined;
  }
}

/** Bytes that are not text have control characters, or are not valid in the charset. */
function isText(answer: Body): boolean {
  const sample = textOf({ ...answer, body: answer.body.subarray(0, 4096) });
  // oxlint-disable-next-line no-control-regex -- what text does not have
  if (/[\u0000-\u0008\u000e-\u001a\u001c-\u001f]/.test(sample)) return false;
  const odd = sample.slice(0, -1).match(/\ufffd/g)?.length ?? 0;
  return odd === 0;
}

const rowBytes = 16;

/** `00000010  7b 22 61 22 …  {"a"…` */
export function hexOf({ body }: Pick<Body, "body">): string {
  const rows: string[] = [];
  const shown = body.subarray(0, maxShown.hex);
  for (let at = 0; at < shown.length; at += rowBytes) {
    const bytes = [...shown.subarray(at, at + rowBytes)];
    const hex = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = bytes
      .map((byte) => (byte >= 32 && byte < 127 ? String.fromCodePoint(byte) : "."))
      .join("");
    rows.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(rowBytes * 3)} ${text}`);
  }
  return rows.join("\n");
}

/** For an `img`, whose script and links are not followed. */
export function pictureUrlOf(answer: Body): string {
  let text = "";
  for (let at = 0; at < answer.body.length; at += 8192)
    text += String.fromCharCode(...answer.body.subarray(at, at + 8192));
  const [type = ""] = typeOf(answer).split(";");
  return `data:${type.toLowerCase()};base64,${btoa(text)}`;
}

const endings: Record<string, string> = {
  "application/json": "json",
  "text/html": "html",
  "text/plain": "txt",
  "text/csv": "csv",
  "image/svg+xml": "svg",
  "image/jpeg": "jpg",
};

/** The name of the downloaded file. */
export function fileNameOf(name: string, answer: Body): string {
  const [type = ""] = typeOf(answer).toLowerCase().split(";");
  const ending =
    endings[type] ?? /^(?:image|application)\/([a-z0-9]{1,5})$/.exec(type)?.[1] ?? "bin";
  return `${name}.${ending}`;
}
