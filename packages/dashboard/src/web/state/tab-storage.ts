/**
 * What this tab stores in the browser. A browser can be full or forbid it, and a value may be from another version of the page or
 * from someone's hand: nothing here throws, and what does not fit is taken out.
 */
import { fit, type Shape } from "./shape.ts";

const prefix = "spry.";
/** They are not what a user has typed. */
const ofLogin = ["spry.login", "spry.login-attempt"];

/** Of the name `spry.<name>`; undefined where nothing usable is stored. */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the type that the shape describes
export function stored<T>(name: string, shape: Shape): T | undefined {
  try {
    return fit(shape, JSON.parse(sessionStorage.getItem(prefix + name) ?? "null")) as T | undefined;
  } catch {
    return undefined;
  }
}

/** The names, without `spry.`, that begin with this. */
export function storedNames(beginning: string): string[] {
  try {
    return Object.keys(sessionStorage)
      .filter((key) => key.startsWith(prefix + beginning))
      .map((key) => key.slice(prefix.length));
  } catch {
    return [];
  }
}

/** Whether the value could be stored; undefined removes it. */
export function store(name: string, value: object | undefined): boolean {
  try {
    if (value === undefined) sessionStorage.removeItem(prefix + name);
    else sessionStorage.setItem(prefix + name, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/** Removes everything that this tab has stored, but for its login. */
export function forgetStored(): void {
  try {
    for (const key of Object.keys(sessionStorage))
      if (key.startsWith(prefix) && !ofLogin.includes(key)) sessionStorage.removeItem(key);
  } catch {
    // A browser that forbids it has stored nothing.
  }
}

/** Of all tabs: choices such as the theme. */
export function preference(name: string): string | undefined {
  try {
    return localStorage.getItem(prefix + name) ?? undefined;
  } catch {
    return undefined;
  }
}

export function setPreference(name: string, value: string): void {
  try {
    localStorage.setItem(prefix + name, value);
  } catch {
    // It holds until the page is left.
  }
}
