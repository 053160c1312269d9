import { resources } from "@spry/kube/browser";
import { useLive } from "./live.ts";

/** The names of all namespaces, as far as the user may list them. */
export function useNamespaceNames(): string[] {
  const { items } = useLive(resources.namespaces);
  return items.value.map(({ metadata }) => metadata.name ?? "");
}
