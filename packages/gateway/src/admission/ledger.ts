import { type ObjectKey } from "@spry/kube";

/** What is under way at a Pod of a Revision with a hard limit. */
export interface Entry {
  id: string;
  revision: ObjectKey;
  /** `host:port`. */
  pod: string;
  /** How many of the Pod's places it takes. */
  places: number;
}

/** A line of the stream from the gateway that admits to one that may succeed it. */
export type Line =
  | { begin: Entry; seq: number }
  | { end: string }
  /** All that is under way has been said. */
  | { all: number }
  | { alive: true };

/** The answer to everything up to a number. */
export interface Ack {
  seq: number;
}

const maxTextLength = 512;
const maxLineLength = 64 * 1024;

/** Undefined for anything that is not a line of the stream. */
export function parseLine(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Partial<{
      begin: Entry;
      seq: number;
      end: string;
      all: number;
      alive: boolean;
    }> | null;
    if (line?.begin && Number.isSafeInteger(line.seq)) {
      const { id, revision, pod, places } = line.begin;
      const isNamed = [id, revision, pod].every(
        (each) => typeof each === "string" && each !== "" && each.length <= maxTextLength,
      );
      if (!isNamed || !Number.isSafeInteger(places) || places < 1) return undefined;
      return { begin: { id, revision, pod, places }, seq: line.seq ?? 0 };
    }
    if (typeof line?.end === "string") return { end: line.end };
    if (Number.isSafeInteger(line?.all)) return { all: line?.all ?? 0 };
    return line?.alive === true ? { alive: true } : undefined;
  } catch {
    return undefined;
  }
}

/** The number that is acknowledged; undefined for anything else. */
export function parseAck(text: string): number | undefined {
  try {
    const seq = (JSON.parse(text) as Partial<Ack> | null)?.seq;
    return Number.isSafeInteger(seq) ? seq : undefined;
  } catch {
    return undefined;
  }
}

/** Splits a stream into lines; throws for one that is too long. */
export function lineSplitter(onLine: (line: string) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let pending = "";
  return (chunk) => {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split("\n");
    pending = lines.pop() ?? "";
    if (pending.length > maxLineLength) throw new Error("a line is too long");
    for (const line of lines) if (line !== "") onLine(line);
  };
}
