/** Addresses of views: a path, and in its query what is set in the view. An address can be sent to another user. */
import { computed, signal } from "@preact/signals";

const address = signal(location.pathname + location.search);
/** Whether the present view was reached by Back or Forward: it is then as it was left. */
let isReturn = false;
export const cameBack = (): boolean => isReturn;
addEventListener("popstate", () => {
  isReturn = true;
  address.value = location.pathname + location.search;
});

// Joined as texts: read by itself, `//` would be the beginning of a host.
const url = computed(() => new URL(location.origin + address.value));
/** Segments of the path, decoded: `["functions", "default", "hello"]`. */
export const segments = computed(() => url.value.pathname.split("/").filter(Boolean).map(decoded));
export const query = computed(() => url.value.searchParams);

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function navigate(to: string, { replace = false } = {}): void {
  if (to === address.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", location.origin + to);
  isReturn = false;
  address.value = to;
  if (!replace) document.querySelector("main")?.scrollTo(0, 0);
}

/** Changes the query of this address; `undefined` removes a name. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const search = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") search.delete(name);
    else search.set(name, value);
  }
  const text = search.toString();
  navigate(url.value.pathname + (text ? `?${text}` : ""), { replace: true });
}

/** Links within the page are followed without a reload. */
addEventListener("click", (event) => {
  if (
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey
  )
    return;
  const link = (event.target as Element).closest("a");
  if (!link || link.origin !== location.origin || link.target || link.hasAttribute("download"))
    return;
  event.preventDefault();
  navigate(link.pathname + link.search);
});

const segment = encodeURIComponent;
export const paths = {
  functions: (namespace?: string) =>
    namespace === undefined ? "/functions" : `/functions?ns=${segment(namespace)}`,
  fn: (namespace: string, name: string, tab?: string) =>
    `/functions/${segment(namespace)}/${segment(name)}${tab ? `/${tab}` : ""}`,
  create: (namespace?: string) =>
    namespace === undefined ? "/new" : `/new?ns=${segment(namespace)}`,
};
