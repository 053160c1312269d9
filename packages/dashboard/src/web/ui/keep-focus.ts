import { useEffect } from "preact/hooks";

/** Where what had the focus is gone, the content of the page gets it: a keyboard goes on from there, not from the top. */
function focusIfLost(): void {
  setTimeout(() => {
    const { activeElement, body } = document;
    if (activeElement && activeElement !== body) return;
    document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
  });
}

let lastPlace: string | undefined;

/** Of each place within the page. A page that has just been loaded leaves the focus at its beginning, where the skip link is. */
export function useFocusOnArrival(place: string): void {
  useEffect(() => {
    if (lastPlace !== undefined && lastPlace !== place) focusIfLost();
    lastPlace = place;
  }, [place]);
}

/** Of a component whose controls may have the focus when it goes away. */
export function useFocusOnLeave(isShown: boolean): void {
  useEffect(() => (isShown ? focusIfLost : undefined), [isShown]);
}
