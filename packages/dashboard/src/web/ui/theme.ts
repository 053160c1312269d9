import { effect, signal } from "@preact/signals";
import { preference, setPreference } from "../state/tab-storage.ts";

type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const fromSystem = (): Theme => (system.matches ? "dark" : "light");
const chosen = preference("theme");

/** The user's choice; without one, the system's. */
export const theme = signal<Theme>(chosen === "dark" || chosen === "light" ? chosen : fromSystem());

export function applyTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
  system.addEventListener("change", () => {
    if (preference("theme") === undefined) theme.value = fromSystem();
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  setPreference("theme", theme.value);
}
