import { readFileSync, statSync } from "node:fs";
import { type SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const limits = { fileBytes: 32 * 1024 * 1024, files: 100 };
const framePattern = /(?<=[( ])(?:file:\/\/)?(\/[^\n():]+):(\d+):(\d+)/g;
const commentPattern = /^\/\/[#@] sourceMappingURL=(\S+)\s*$/gm;

let areAtSource = (): boolean => false;

/** From now on stacks are at their source already whenever this says so. */
export function leaveFrames(areThere: () => boolean): void {
  areAtSource = areThere;
}

/**
 * The text of an error with the places in its stack where the author wrote them, for bundled or
 * compiled code that says where its source map is. Maps are read when they are first needed: Node.js'
 * own `--enable-source-maps` would read them at every start.
 */
export function atSource(text: string): string {
  return areAtSource() ? text : framesAtSource(text);
}

/** As `atSource`, for frames that V8 has written. */
export function framesAtSource(text: string): string {
  return text.replace(framePattern, (place, file: string, line: string, column: string) => {
    const map = mapOf(decoded(file));
    const entry = map?.sourceMap.findEntry(Number(line) - 1, Number(column) - 1);
    if (!map || !entry || !("originalSource" in entry)) return place;
    const source = entry.originalSource.replace(/^file:\/\//, "");
    const origin = resolve(map.directory, source);
    keepText(origin, map.sourceMap.payload, entry.originalSource);
    return `${origin}:${entry.originalLine + 1}:${entry.originalColumn + 1}`;
  });
}

/** What the author wrote in a file that a stack has named, where its source map has it. */
export const textAtSource = (file: string): string | undefined => texts.get(file);

const texts = new Map<string, string>();

function keepText(origin: string, payload: SourceMapPayload, source: string): void {
  const text = payload.sourcesContent?.[payload.sources.indexOf(source)];
  if (typeof text !== "string") return;
  if (texts.size >= limits.files) texts.clear();
  texts.set(origin, text);
}

/** A path that is in no URL may have a percent sign in it. */
function decoded(file: string): string {
  try {
    return decodeURI(file);
  } catch {
    return file;
  }
}

interface Found {
  sourceMap: SourceMap;
  directory: string;
}

const maps = new Map<string, Found | undefined>();

function mapOf(file: string): Found | undefined {
  if (maps.has(file)) return maps.get(file);
  if (maps.size >= limits.files) maps.clear();
  const found = readMap(file);
  maps.set(file, found);
  return found;
}

/** Undefined also when there is something wrong with it: a stack with other places is better than none. */
function readMap(file: string): Found | undefined {
  try {
    const [, url] = [...read(file).matchAll(commentPattern)].at(-1) ?? [];
    if (url === undefined) return undefined;
    const [, encoding, data = ""] = /^data:[^,]*?(;base64)?,(.*)$/.exec(url) ?? [];
    const isInline = url.startsWith("data:");
    const path = url.startsWith("file:") ? fileURLToPath(url) : resolve(dirname(file), url);
    const text = isInline ? Buffer.from(data, encoding ? "base64" : "utf8").toString() : read(path);
    const payload = JSON.parse(text) as SourceMapPayload;
    // Loaded only now: most Functions never fail.
    const { SourceMap } = process.getBuiltinModule("node:module");
    return { sourceMap: new SourceMap(payload), directory: dirname(isInline ? file : path) };
  } catch {
    return undefined;
  }
}

function read(file: string): string {
  if (statSync(file).size > limits.fileBytes) throw new Error(`${file} is too large`);
  return readFileSync(file, "utf8");
}
