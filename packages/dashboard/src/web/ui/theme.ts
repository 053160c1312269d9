import { effect, signal } from "@preact/signals";

type Theme = "light" | "dark";

const storageKey = "spry.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const fromSystem = (): Theme => (system.matches ? "dark" : "light");
const chosen = localStorage.getItem(storageKey);

/** The user's choice; without one, the system's. */
export const theme = signal<Theme>(chosen === "dark" || chosen === "light" ? chosen : fromSystem());

export function applyTheme(): void {
  effect(() => {
    document.documentElement.dataset["theme"] = theme.value;
  });
  system.addEventListener("change", () => {
    if (localStorage.getItem(storageKey) === null) theme.value = fromSystem();
  });
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(storageKey, theme.value);
}
