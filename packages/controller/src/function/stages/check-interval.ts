import { annotations, type Function } from "@spry/function";

const units: Record<string, number> = { s: 1000, m: 60_000, h: 3_600_000 };
/** Servers are to be spared, and a timer must not overflow. */
const bounds = { shortestMs: 5000, longestMs: 24 * 3_600_000 };
const continuousMs = 10_000;

/**
 * How often the reference of this Function is checked, in milliseconds; 0 for never. An annotation
 * that cannot be read changes nothing, and is worth a warning.
 */
export function checkIntervalOf(
  fn: Function,
  defaultMs: number,
): { intervalMs: number; warning?: string } {
  const all = fn.metadata.annotations ?? {};
  const text = all[annotations.gitCheckInterval]?.trim();
  if (text === undefined) {
    return {
      intervalMs: all[annotations.continuousGitCheckout] === "true" ? continuousMs : defaultMs,
    };
  }
  if (text === "off" || text === "0") return { intervalMs: 0 };
  const [, number = "", unit = ""] = /^(\d{1,6})([smh])$/.exec(text) ?? [];
  const ms = Number(number) * (units[unit] ?? 0);
  if (ms > 0) {
    return { intervalMs: Math.min(Math.max(ms, bounds.shortestMs), bounds.longestMs) };
  }
  const shown = JSON.stringify(text.slice(0, 40));
  const warning = `annotation ${annotations.gitCheckInterval} is ${shown}: use 30s, 5m, 1h or off`;
  return { intervalMs: defaultMs, warning };
}
