/** For whom the runtime answers on paths of its own (docs/runtime-contract.md 2.1 and 2.2). */
import { type IncomingMessage } from "node:http";

type Asking = Pick<IncomingMessage, "headers">;

/** The kubelet, and our node agent. */
export function isProbe({ headers }: Asking): boolean {
  return headers["user-agent"]?.startsWith("kube-probe/") ?? false;
}

/** Prometheus, and what reads metrics as it does: by its header, or by the formats that it accepts. */
export function isScrape({ headers }: Asking): boolean {
  return (
    headers["x-prometheus-scrape-timeout-seconds"] !== undefined ||
    /openmetrics-text|version=0\.0\.4/.test(headers.accept ?? "")
  );
}

/** Through a gateway or an Ingress: those name who has asked them. */
export function isFromOutside({ headers }: Asking): boolean {
  return headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
}
