import { BlockList, isIP, type Socket } from "node:net";
import {
  type Change,
  type Clock,
  type EndpointSlice,
  type Informer,
  keyOf,
  type Logger,
  type ObjectKey,
} from "@spry/kube";
import { isGatewaySlice } from "../routing/endpoints.ts";
import { Entrance, type User } from "./entrance.ts";

export interface InsideOptions {
  /** Which addresses in the slices are this gateway's: addresses, or blocks such as `127.96.0.0/12`. */
  own: readonly string[];
  /** Where to listen instead of at the address itself; on a cluster the Pod's address is every interface's. */
  bind?: string;
  /** Whether a caller is a program of this machine, which policies keep away from nothing; those of loopback by default. */
  isMachine?: (address: string) => boolean;
}

export interface EntrancesDeps {
  slices: Informer<EndpointSlice>;
  clock: Clock;
  log: Logger;
  /** A connection has been opened to a Service's address. */
  accept: (socket: Socket, entrance: Entrance) => void;
}

const serviceNameLabel = "kubernetes.io/service-name";
/** A slice cannot make the gateway listen on thousands of ports. */
const maxPlacesOfSlice = 32;
const maxEntrances = 20_000;

/**
 * Where callers inside the cluster reach Services that are served by a Route: the addresses and ports in the slices of
 * `gateway.serving.spry` that are this gateway's own (ADR 0018). What is dialled says which Service is meant; `Host` does
 * not matter.
 */
export class Entrances {
  readonly #deps: EntrancesDeps;
  readonly #bind: string | undefined;
  readonly #own = new BlockList();
  readonly #entrances = new Map<string, Entrance>();
  /** `address:port` that each slice names. */
  readonly #placesOf = new Map<ObjectKey, string[]>();
  #vacated = () => {};
  #isClosed = false;

  constructor(deps: EntrancesDeps, options: InsideOptions) {
    this.#deps = deps;
    this.#bind = options.bind;
    for (const own of options.own) {
      const [address = "", length] = own.split("/");
      const family = isIP(address) === 6 ? "ipv6" : "ipv4";
      if (length === undefined) this.#own.addAddress(address, family);
      else this.#own.addSubnet(address, Number(length), family);
    }
    deps.slices.onChange((change) => this.#changed(change));
  }

  /** Resolves when no slice names this gateway any more, or after `ms`. */
  vacated(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#deps.clock.after(ms, resolve);
      this.#vacated = () => {
        if (this.#placesOf.size > 0) return;
        cancel();
        resolve();
      };
      this.#vacated();
    });
  }

  /** Stops listening; resolves when the connections have ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#entrances.values()].map((entrance) => entrance.close()));
    this.#entrances.clear();
  }

  #changed({ type, object }: Change<EndpointSlice>): void {
    if (this.#isClosed) return;
    const slice = keyOf(object);
    const before = this.#placesOf.get(slice);
    const service = object.metadata.labels?.[serviceNameLabel];
    const isPresent = type !== "deleted" && isGatewaySlice(object) && service !== undefined;
    const after = isPresent ? this.#ownPlaces(object) : [];
    if (after.length > 0) this.#placesOf.set(slice, after);
    else this.#placesOf.delete(slice);
    for (const place of before ?? []) if (!after.includes(place)) this.#leave(place, slice);
    const { namespace, creationTimestamp: since = "" } = object.metadata;
    for (const place of after) {
      this.#open(place, slice, { service: `${namespace}/${service}`, since });
    }
    this.#vacated();
  }

  #ownPlaces({ endpoints, ports, addressType }: EndpointSlice): string[] {
    const family = addressType === "IPv6" ? "ipv6" : "ipv4";
    const addresses = (endpoints ?? [])
      .flatMap((endpoint) => endpoint.addresses)
      .filter((address) => isIP(address) !== 0 && this.#own.check(address, family));
    const places = addresses.flatMap((address) =>
      (ports ?? []).flatMap(({ port }) => (port ? `${this.#bind ?? address} ${port}` : [])),
    );
    return [...new Set(places)].slice(0, maxPlacesOfSlice);
  }

  #open(place: string, slice: ObjectKey, user: User): void {
    const existing = this.#entrances.get(place);
    if (existing) return existing.use(slice, user);
    if (this.#entrances.size >= maxEntrances) {
      const fields = { service: user.service, limit: maxEntrances };
      this.#deps.log.error(fields, "too many addresses to listen on for callers in the cluster");
      return;
    }
    const [host = "", port] = place.split(" ");
    const { clock, log, accept } = this.#deps;
    const entrance = new Entrance({ host, port: Number(port), clock, log, accept });
    entrance.use(slice, user);
    this.#entrances.set(place, entrance);
  }

  #leave(place: string, slice: ObjectKey): void {
    const entrance = this.#entrances.get(place);
    entrance?.leave(slice, () => {
      if (this.#entrances.get(place) === entrance) this.#entrances.delete(place);
    });
  }
}
