import { signal } from "@preact/signals";

/** The width at which the style sheet changes, too. */
const narrow = matchMedia("(max-width: 720px)");
const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", ({ matches }) => (isNarrow.value = matches));

export const usePhone = (): boolean => isNarrow.value;
