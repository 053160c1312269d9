import { parseQuantity } from "@spry/kube";
import { parseDuration } from "./duration.ts";

/** What is wrong with a ConfigMap, in a sentence that names the key. */
export class SettingsError extends Error {
  override readonly name = "SettingsError";
}

/** Reads the values of a ConfigMap; a key that is missing has its default. Throws `SettingsError` for one that is not valid. */
export class ConfigReader {
  readonly #data: Readonly<Record<string, string>>;

  constructor(data: Readonly<Record<string, string>>) {
    this.#data = data;
  }

  text(key: string, fallback: string): string {
    return this.#data[key] ?? fallback;
  }

  number(key: string, fallback: number, range: { min?: number; max?: number } = {}): number {
    const text = this.#data[key];
    if (text === undefined) return fallback;
    const value = Number(text);
    if (text.trim() === "" || !Number.isFinite(value))
      throw new SettingsError(`${key}: ${text} is not a number`);
    const { min = -Infinity, max = Infinity } = range;
    if (value < min || value > max)
      throw new SettingsError(`${key} = ${text}, must be in [${min}, ${max}]`);
    return value;
  }

  integer(key: string, fallback: number, range: { min?: number; max?: number } = {}): number {
    const value = this.number(key, fallback, range);
    if (!Number.isSafeInteger(value)) throw new SettingsError(`${key}: ${value} is not an integer`);
    return value;
  }

  /** Go's `strconv.ParseBool`: what is not true is false. */
  flag(key: string, fallback: boolean): boolean {
    const text = this.#data[key];
    return text === undefined ? fallback : text.toLowerCase() === "true";
  }

  /** Milliseconds. */
  duration(key: string, fallbackMs: number, range: { min?: number; max?: number } = {}): number {
    const text = this.#data[key];
    if (text === undefined) return fallbackMs;
    const ms = parseDuration(text);
    if (ms === undefined) throw new SettingsError(`${key}: ${text} is not a duration such as 60s`);
    const { min = 0, max = Infinity } = range;
    if (ms < min || ms > max)
      throw new SettingsError(`${key} = ${text}, must be in [${min / 1000}s, ${max / 1000}s]`);
    return ms;
  }

  quantity(key: string): string | undefined {
    const text = this.#data[key];
    if (text !== undefined && !isQuantity(text))
      throw new SettingsError(`${key}: ${text} is not a quantity such as 100M`);
    return text;
  }
}

export function isQuantity(text: string): boolean {
  try {
    parseQuantity(text);
    return true;
  } catch {
    return false;
  }
}
