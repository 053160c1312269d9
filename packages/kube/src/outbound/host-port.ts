import { isIP } from "node:net";
import { plainAddress, withoutBrackets } from "./ip-address.ts";

/** One of the operator's exceptions: a host name in lower case or an address, and a port. */
export interface HostPort {
  host: string;
  port: number;
}

/** Reads `localhost:5001`, `192.168.1.5:5000` or `[::1]:5001`. Undefined for anything else: without a port it would open them all. */
export function parseHostPort(text: string): HostPort | undefined {
  const [, host = "", digits = ""] =
    /^(\[[0-9a-f:.]+\]|[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?):(\d{1,5})$/i.exec(text) ?? [];
  const port = Number(digits);
  // `0x7f.1` is an address, as in a URL.
  if (host === "" || port < 1 || port > 65_535 || !URL.canParse(`http://${host}`)) return undefined;
  return { host: normalHost(new URL(`http://${host}`).hostname), port };
}

/** Whether a pair stands for this host, as a client names it, or for this address. `localhost` is its two addresses, too. */
export function isListed(
  pairs: readonly HostPort[],
  hostname: string,
  address: string,
  port: number,
): boolean {
  const name = normalHost(hostname);
  const plain = plainAddress(address);
  const isLocal = plain === "127.0.0.1" || plain === "::1";
  return pairs.some(
    (pair) =>
      pair.port === port &&
      (pair.host === name || pair.host === plain || (pair.host === "localhost" && isLocal)),
  );
}

/** As both sides of a comparison are written: in lower case, without a last dot, and an address as the IPv4 address that it carries. */
function normalHost(hostname: string): string {
  const host = withoutBrackets(hostname.toLowerCase()).replace(/\.$/, "");
  return isIP(host) === 0 ? host : plainAddress(host);
}
