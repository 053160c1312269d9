import { signal } from "@preact/signals";

/** The same width as in the style sheet. */
const narrow = matchMedia("(max-width: 720px)");
const isNarrow = signal(narrow.matches);
narrow.addEventListener("change", ({ matches }) => (isNarrow.value = matches));

export const usePhone = (): boolean => isNarrow.value;
