import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { familyOf } from "./ip-address.ts";

/** Interfaces come and go with Pods; reading hundreds of them for each look-up would cost more than the look-up. */
const freshMs = 500;

let read: { list: BlockList; at: number; api: string } | undefined;

/** The addresses of this machine's interfaces at present (at most half a second old), and that of the Kubernetes API. */
export function ownAddresses(): BlockList {
  const api = process.env["KUBERNETES_SERVICE_HOST"] ?? "";
  const now = performance.now();
  if (read && read.api === api && now - read.at < freshMs) return read.list;
  const list = new BlockList();
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  for (const address of [...all.map((each) => each.address), api]) {
    const plain = address.replace(/%.*$/, "");
    if (isIP(plain)) list.addAddress(plain, familyOf(plain));
  }
  read = { list, at: now, api };
  return list;
}
