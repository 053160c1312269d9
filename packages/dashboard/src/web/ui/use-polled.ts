import { useEffect, useState } from "preact/hooks";

/**
 * What `load` resolves with, asked again a while after each response for as long as it is shown. `key` says what it
 * depends on; with an empty one nothing is asked.
 */
export function usePolled<T>(
  key: string,
  load: () => Promise<T>,
  pollMs: number,
): { value: T | undefined; reload: () => void } {
  const [value, setValue] = useState<T>();
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (key === "") return undefined;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      const found = await load().catch(() => undefined);
      if (isOver) return;
      if (found !== undefined) setValue(found);
      timer = setTimeout(() => void look(), pollMs);
    };
    void look();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [key, round]);
  return { value, reload: () => setRound((count) => count + 1) };
}
