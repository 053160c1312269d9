import { useEffect } from "preact/hooks";

/** Where what had the focus is gone, the content of the page gets it: a keyboard goes on from there, not from the top. */
export function focusIfLost(): void {
  setTimeout(() => {
    const { activeElement, body } = document;
    if (activeElement && activeElement !== body) return;
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
  });
}

/** Of a component whose controls may have the focus when it goes away. */
export function useFocusOnLeave(isShown: boolean): void {
  useEffect(() => (isShown ? focusIfLost : undefined), [isShown]);
}
