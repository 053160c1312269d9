import { useState } from "preact/hooks";

/**
 * What is typed in a form, kept in the tab's session storage: it survives Escape, a reload, and an end of the login.
 * `forget` is for when it has been applied. The fields of `empty` are those of the form.
 */
export function useKept<T extends object>(
  name: string,
  empty: T,
): { value: T; change: (part: Partial<T>) => void; forget: () => void } {
  const key = `spry.typed.${name}`;
  const [value, setValue] = useState(() => ({ ...empty, ...readStored<T>(key) }));
  return {
    value,
    change(part) {
      const next = { ...value, ...part };
      setValue(next);
      sessionStorage.setItem(key, JSON.stringify(next));
    },
    forget() {
      setValue(empty);
      sessionStorage.removeItem(key);
    },
  };
}

function readStored<T>(key: string): Partial<T> {
  try {
    return (JSON.parse(sessionStorage.getItem(key) ?? "{}") as Partial<T> | null) ?? {};
  } catch {
    return {};
  }
}
