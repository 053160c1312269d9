/** RFC 3339 in a time zone, whole seconds: `2026-03-01T09:00:00+01:00`; `Z` for UTC. */
export function localTimestamp(at: number, timeZone = "UTC"): string {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
  const name = parts.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const [, sign = "+", hours = "00", minutes = "00"] = /GMT([+-])(\d\d):(\d\d)/.exec(name) ?? [];
  const offset = (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const local = new Date(at + offset * 60_000).toISOString().replace(/\.\d+Z$/, "");
  return `${local}${offset === 0 ? "Z" : `${sign}${hours}:${minutes}`}`;
}
