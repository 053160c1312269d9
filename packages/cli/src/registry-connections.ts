import { type Server } from "node:http";
import { boundConnections, connectionLimit } from "@spry/kube";

/** Nodes, builds and clients that push keep a few each. */
export function boundRegistry(server: Server): void {
  boundConnections(server, {
    total: connectionLimit(4_000, 0.2),
    ofAddress: connectionLimit(2_000, 0.1),
  });
}
