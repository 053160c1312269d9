import { badRequest } from "../errors.ts";

/** Seconds since 1970 of Go's zero time, 0001-01-01T00:00:00Z, and of the last one that JSON can express. */
const zeroSeconds = -62_135_596_800;
const maxSeconds = 253_402_300_799;

/** RFC 3339 in UTC, with microseconds when nanoseconds are given; undefined for Go's zero time. */
export function formatTimestamp(seconds: number, nanos?: number): string | undefined {
  if (seconds === zeroSeconds) return undefined;
  const inRange = seconds > zeroSeconds && seconds <= maxSeconds;
  if (!inRange || (nanos !== undefined && (nanos < 0 || nanos >= 1e9))) {
    throw badRequest("the protobuf body holds a time out of range");
  }
  const text = new Date(seconds * 1000).toISOString().slice(0, 19);
  if (nanos === undefined) return `${text}Z`;
  return `${text}.${String(Math.trunc(nanos / 1000)).padStart(6, "0")}Z`;
}

/** Undefined when the text is not a time, or is Go's zero time. */
export function parseTimestamp(
  text: string,
  micro: boolean,
): { seconds: number; nanos: number } | undefined {
  const seconds = Math.floor(Date.parse(text) / 1000);
  if (!(seconds > zeroSeconds)) return undefined;
  const [, fraction = ""] = /\.(\d+)/.exec(text) ?? [];
  return { seconds, nanos: micro ? Number(fraction.slice(0, 6).padEnd(6, "0")) * 1000 : 0 };
}
