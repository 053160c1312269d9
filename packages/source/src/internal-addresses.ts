/** Which addresses Git is not fetched from, and an operator's exceptions. */
import { type BlockList, isIP } from "node:net";
import { addressKind, blockListOf, familyOf, formsOf } from "@spry/kube";

/** Loopback, link-local and the like, the machine's own addresses, and the Kubernetes API. */
export function isInternal(address: string): boolean {
  const kind = addressKind(address);
  return kind !== "public" && kind !== "private";
}

/** A list that an operator has written: addresses and networks (`10.0.0.0/8`). Undefined where an entry is neither. */
export function networkOf(entry: string): BlockList | undefined {
  const [address = "", bits, ...rest] = entry.split("/");
  const family = isIP(address);
  const most = family === 4 ? 32 : 128;
  if (family === 0 || rest.length > 0) return undefined;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= most)) return undefined;
  return blockListOf([[address, bits === undefined ? most : Number(bits)]]);
}

export function isWithin(address: string, networks: readonly BlockList[]): boolean {
  return networks.some((network) =>
    formsOf(address).some((form) => network.check(form, familyOf(form))),
  );
}
