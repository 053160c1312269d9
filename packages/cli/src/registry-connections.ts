import { type Server } from "node:http";
import { boundConnections } from "@spry/kube";

/** Nodes, builds and clients that push keep a few each. */
export function boundRegistry(server: Server): void {
  boundConnections(server, { total: 4_000, ofAddress: 2_000 });
}
