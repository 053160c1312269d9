import { networkInterfaces } from "node:os";

/** Where Pods of a local platform reach this machine: in `oci` their loopback is their own. */
export function hostAddress(): string {
  if (process.env["SPRY_TEST_SANDBOX"] !== "oci") return "127.0.0.1";
  const all = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return all.find(({ family, internal }) => family === "IPv4" && !internal)?.address ?? "127.0.0.1";
}
