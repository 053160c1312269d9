import { getHeapStatistics } from "node:v8";
import { type StoreQuota } from "./stored-bytes.ts";

/**
 * Of the heap's limit: what is stored is in memory as text, and parts of it once more, parsed or as the text of an answer.
 * Node.js gives a process a quarter of the machine's memory, at most 4 GiB (`--max-old-space-size`).
 */
const shareOfHeap = 0.4;
/** Of all that may be stored. */
const shareOfNamespace = 5 / 8;

/** The limits for a total of so many bytes. */
export function storeQuotaOf(total: number): StoreQuota {
  return { total: Math.floor(total), perNamespace: Math.floor(total * shareOfNamespace) };
}

/** The limits that this process's heap allows: with 4 GiB, 1.6 GiB in all and 1 GiB for a namespace. */
export function defaultStoreQuota(): StoreQuota {
  return storeQuotaOf(getHeapStatistics().heap_size_limit * shareOfHeap);
}

/** How large a heap has to be for such a total, in bytes. */
export function heapFor(total: number): number {
  return Math.ceil(total / shareOfHeap);
}

/** How much can be loaded at all, in bytes: a start beyond it would end by a lack of memory. */
export function loadable(): number {
  return getHeapStatistics().heap_size_limit * 0.8;
}
