import { useEffect, useState } from "preact/hooks";
import { openTabs } from "../state/own-tab.ts";
import { type StoredValue } from "../state/encrypted-store.ts";

/** The tabs among those of `all` that are open: what is typed there may change. */
export function useOpenTabs(all: readonly StoredValue[]): ReadonlySet<string> | undefined {
  const [open, setOpen] = useState<ReadonlySet<string>>();
  const tabs = all.map(({ tab }) => tab).join();
  useEffect(() => {
    if (tabs !== "") void openTabs().then(setOpen);
  }, [tabs]);
  return open;
}
