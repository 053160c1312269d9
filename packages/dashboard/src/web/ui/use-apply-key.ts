import { useEffect } from "preact/hooks";

/** Ctrl-S presses the button that applies what the view shows. */
export function useApplyKey(button: { readonly current: HTMLElement | null }): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "s") return;
      event.preventDefault();
      // What was typed just before is shown by the next picture, and so is the button.
      requestAnimationFrame(() =>
        setTimeout(() => {
          // A dialogue above it has buttons of its own.
          if (!document.querySelector("dialog[open]")) button.current?.click();
        }),
      );
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
