/** Arguments as text to values; a UserError that says how to write them. */
import { UserError } from "../user-error.ts";

/** A port; 0: any free one. */
export const port = (text: string): number => {
  const value = Number(text);
  if (Number.isInteger(value) && value >= 0 && value <= 65535) return value;
  throw new UserError(
    `${text} is not a valid port`,
    "use a number from 0 (any free port) to 65535",
  );
};
export const revision = (text: string): number => {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new UserError(
    `${text} is not a valid number of a version`,
    "`spry history FUNCTION` lists them",
  );
};
const units: Record<string, number> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};
/** As a number, or as tools written in Go have it: 90s, 1m30s, 500ms. */
function secondsIn(text: string): number {
  if (!/^(?:\d+(?:\.\d+)?(?:[nuµm]s|[smh]))+$/.test(text)) return Number(text);
  const parts = [...text.matchAll(/([\d.]+)(\D+)/g)];
  return parts.reduce(
    (sum, [, amount, unit = ""]) => sum + Number(amount) * (units[unit] ?? NaN),
    0,
  );
}
/** A positive number of seconds. */
export const seconds = (text: string): number => {
  const value = secondsIn(text);
  if (text.trim() !== "" && Number.isFinite(value) && value > 0) return value;
  throw new UserError(`${text} is not a number of seconds`, "write it as in --timeout 60");
};
/** The same, or 0: no limit. */
export const secondsOrNone = (text: string): number =>
  /^0s?$/.test(text.trim()) ? 0 : seconds(text);
/** Seconds of a duration such as 90, 45s, 5m or 2h. */
export const duration = (text: string): number => {
  const [, amount, unit = "s"] = /^(\d{1,9})([smhd])?$/.exec(text) ?? [];
  const factor = { s: 1, m: 60, h: 3600, d: 86_400 }[unit] ?? 1;
  if (amount !== undefined && Number(amount) > 0) return Number(amount) * factor;
  throw new UserError(`${text} is not a duration`, "write it as 30s, 5m, 2h or 1d");
};
export const count = (text: string): number => {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const what = /^[+-]?\d+$/.test(text) ? "not a possible number" : "not a number";
  throw new UserError(`${text} is ${what}`, "use a whole number from 0 to 999999999");
};
/** How many instances of a Function run. */
export const replicas = (text: string): number => {
  if (/^[1-9]\d{0,4}$/.test(text)) return Number(text);
  const what = /^[+-]?\d+$/.test(text) ? "not a possible number" : "not a number";
  throw new UserError(
    `${text} is ${what} of instances`,
    Number(text) === 0
      ? "1 is the least; to scale to zero, set scale.min to 0 in spry.yaml, or minReplicas in spec.scaleConfig"
      : "use a whole number from 1 to 99999",
  );
};
/** How many processes may wait for Functions: a small number, or `off`. */
export const warmProcesses = (text: string): number => {
  if (text === "off") return 0;
  if (/^(?:\d|1[0-6])$/.test(text)) return Number(text);
  throw new UserError(`${text} is not a number of warm processes`, "use off, or 0 to 16");
};
/** For options that can be repeated. */
export const collect = (value: string, all: string[] = []): string[] => [...all, value];
/** Names of hosts, in lower case. */
export const hostNames = (text: string, all: string[] = []): string[] => {
  const name = text.toLowerCase().replace(/\.$/, "");
  const isName = name
    .split(".")
    .every((label) => /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/.test(label));
  if (isName && name.length <= 253) return [...all, name];
  throw new UserError(
    `${text} is not a host name`,
    "write it without scheme and port: dash.example.com",
  );
};
