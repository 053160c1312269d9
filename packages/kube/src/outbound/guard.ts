/**
 * Which addresses a client of the platform connects to for a tenant. The tenant names a host, and the program that calls it
 * stands elsewhere in the network than the tenant does: it must not become the tenant's deputy.
 */
import { lookup as systemLookup, type LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { addressKind } from "./address-kind.ts";
import { AddressRefusedError } from "./address-refused.ts";
import { type HostPort, isListed } from "./host-port.ts";
import { plainAddress, withoutBrackets } from "./ip-address.ts";

/** What one client may call. Link-local addresses, metadata of clouds and the like (`addressKind`) are never called. */
export interface OutboundPolicy {
  /** Whether private networks (RFC 1918, unique local) may be called: where what tenants name is often there. */
  allowPrivate: boolean;
  /** Whether everything on loopback and at this machine's own addresses may be called; default false. */
  allowLoopback?: boolean;
  /** The operator's exceptions for loopback and the machine's own addresses (`spry up --allow-loopback`); undefined where there is no such list. */
  allowed?: readonly HostPort[] | undefined;
  /** Why an address that is otherwise allowed is not called, as the end of a sentence: it is another tenant's, for example. */
  problemOf?: (address: string, port: number) => string | undefined;
  /** How names are resolved; the system's way by default. */
  lookup?: LookupFunction;
}

/**
 * Decides about addresses, and resolves names for connections, so that the address that is checked is the one that is connected
 * to. Who makes a connection asks `refusal` about a host that is an address (Node.js resolves no such host), and passes
 * `lookup(port)` for all others; connections are kept for requests with the same guard only.
 */
export class OutboundGuard {
  readonly #policy: OutboundPolicy;

  constructor(policy: OutboundPolicy) {
    this.#policy = policy;
  }

  /**
   * Why an address is not called, as a sentence; undefined if it may be.
   * @param hostname what the client names it by, where that is not the address itself
   */
  problem(address: string, port: number, hostname: string = address): string | undefined {
    const { allowPrivate, allowLoopback = false, allowed, problemOf } = this.#policy;
    const kind = addressKind(address);
    if (kind === undefined) return `${address} is not an IP address`;
    if (kind === "forbidden") return `address ${address} is link-local or reserved`;
    if (kind === "loopback" && !allowLoopback && !isListed(allowed ?? [], hostname, address, port))
      return `address ${address} is loopback, or this machine's own${allowed ? wayOut : ""}`;
    if (kind === "private" && !allowPrivate) return `address ${address} is private`;
    const more = problemOf?.(plainAddress(address), port);
    return more === undefined ? undefined : `address ${address} ${more}`;
  }

  /** Why a host is not called that is an address, with or without brackets; undefined for names, which `lookup` checks. */
  refusal(hostname: string, port: number): AddressRefusedError | undefined {
    const host = withoutBrackets(hostname);
    const why = isIP(host) === 0 ? undefined : this.problem(host, port);
    return why === undefined ? undefined : new AddressRefusedError(why);
  }

  /**
   * For connections to this port. Fails when one of a name's addresses is refused: which of them is used is its owner's choice.
   * @param usual how the client resolves this name, where the policy says nothing; the system's way by default
   */
  lookup(port: number, usual: LookupFunction = systemLookup): LookupFunction {
    const resolve = this.#policy.lookup ?? usual;
    return (hostname, options, callback) => {
      resolve(hostname, { ...options, all: true }, (error, found) => {
        if (error) return callback(error, "");
        const addresses = found as LookupAddress[];
        const [first] = addresses;
        for (const { address } of addresses) {
          const why = this.problem(address, port, hostname);
          if (why !== undefined) return callback(new AddressRefusedError(why), "");
        }
        if (!first) return callback(new Error(`${hostname} has no address`), "");
        return options.all
          ? callback(null, addresses)
          : callback(null, first.address, first.family);
      });
    };
  }
}

const wayOut = ", which the operator can allow by spry up --allow-loopback HOST:PORT";

/** The port that a URL of HTTP means. */
export const portOf = ({ port, protocol }: URL): number =>
  Number(port) || (protocol === "https:" ? 443 : 80);
