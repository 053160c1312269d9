const units: Record<string, number> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};
const maxLength = 64;

/** Milliseconds of a duration as Go writes it (`time.ParseDuration`): `90s`, `1m30s`, `1.5h`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (text.length === 0 || text.length > maxLength) return undefined;
  const sign = text.startsWith("-") ? -1 : 1;
  const rest = text.replace(/^[+-]/, "");
  if (rest === "0") return 0;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|ms|s|m|h))+$/.test(rest)) return undefined;
  let sum = 0;
  for (const [, number, unit] of rest.matchAll(/(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)/g)) {
    sum += Number(number) * (units[unit ?? ""] ?? 0);
  }
  return sign * sum;
}

/** As Go prints whole seconds: `1h0m0s`, `1m30s`, `6s`. */
export function formatDuration(ms: number): string {
  const seconds = Math.round(ms / 1000);
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60), seconds % 60];
  if (h > 0) return `${h}h${m}m${s}s`;
  return m > 0 ? `${m}m${s}s` : `${s}s`;
}
