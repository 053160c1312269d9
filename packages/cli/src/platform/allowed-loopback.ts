import { type HostPort } from "@spry/kube";

/** For the gateway's process, as JSON: the servers on this machine that keys of issuers may be fetched from. */
export const allowedLoopbackVariable = "SPRY_ALLOWED_LOOPBACK";

export const readAllowedLoopback = (): HostPort[] =>
  JSON.parse(process.env[allowedLoopbackVariable] ?? "[]") as HostPort[];
