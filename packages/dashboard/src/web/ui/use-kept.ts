import { useState } from "preact/hooks";
import { type Shape } from "../state/shape.ts";
import { store, stored } from "../state/tab-storage.ts";

/**
 * What is typed in a form, kept in the tab's session storage: it survives Escape, a reload, and an end of the login.
 * `forget` is for when it has been applied. The fields of `empty` are those of the form, of the `shape` given.
 */
export function useKept<T extends object>(
  name: string,
  empty: T,
  shape: Shape,
): { value: T; change: (part: Partial<T>) => void; forget: () => void } {
  const key = `typed.${name}`;
  const [value, setValue] = useState(() => ({ ...empty, ...stored<Partial<T>>(key, shape) }));
  return {
    value,
    change(part) {
      const next = { ...value, ...part };
      setValue(next);
      store(key, next);
    },
    forget() {
      setValue(empty);
      store(key, undefined);
    },
  };
}
