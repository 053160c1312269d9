import { type UnknownObject } from "@spry/kube";
import { FieldErrors } from "../../field-errors.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { NodePorts } from "./node-ports.ts";

interface ServiceSpec {
  type?: string;
  clusterIP?: string;
  clusterIPs?: string[];
  ipFamilies?: string[];
  ipFamilyPolicy?: string;
  selector?: Record<string, string>;
}

const networkPrefix = [10, 96];
/** Addresses .0.0 and .255.255 are not given out, as in Kubernetes. */
const addressCount = 256 * 256 - 2;
/** Those below are for Services that name them. */
const firstFree = 16;
/** They are not those of any Service. */
const reserved: Record<string, string> = {
  "10.96.0.1": "it is the address of the API server",
  "10.96.0.10": "it is the address of the name server",
};

/** Gives Services addresses of 10.96.0.0/16 that no other Service has. */
export class ClusterAddresses {
  readonly #taken = new Map<string, string>();
  readonly #ports = new NodePorts();
  #next = firstFree;

  /** Counts the address of a Service that is there already. */
  adopt(service: UnknownObject): void {
    const { clusterIP } = (service.spec ?? {}) as ServiceSpec;
    if (isAddress(clusterIP)) this.#taken.set(clusterIP, ownerOf(service));
    this.#ports.adopt(service, ownerOf(service));
  }

  release(service: UnknownObject): void {
    const { clusterIP } = (service.spec ?? {}) as ServiceSpec;
    if (isAddress(clusterIP) && this.#taken.get(clusterIP) === ownerOf(service)) {
      this.#taken.delete(clusterIP);
    }
    this.#ports.release(service, ownerOf(service));
  }

  /**
   * Sets the address and the node ports of a Service that wants them, in place; reports what is taken. Returns
   * how to give them back when the Service is not written after all.
   */
  allocate(
    type: ResourceType,
    service: UnknownObject,
    old?: UnknownObject,
  ): (() => void) | undefined {
    if (type.collection !== "/services") return undefined;
    const giveBack = this.#allocateAddress(service, old);
    const owner = ownerOf(service);
    const undo = () => {
      giveBack?.();
      this.#ports.release(service, owner);
      if (old) this.#ports.adopt(old, owner);
    };
    try {
      if (old) this.#ports.release(old, owner);
      this.#ports.allocate(service, owner);
    } catch (error) {
      undo();
      throw error;
    }
    return undo;
  }

  #allocateAddress(service: UnknownObject, old?: UnknownObject): (() => void) | undefined {
    const spec = service.spec as ServiceSpec;
    if (spec.type === "ExternalName") return undefined;
    const previous = (old?.spec as ServiceSpec | undefined)?.clusterIP;
    if (previous && spec.clusterIP === previous) return undefined;
    if (!spec.clusterIP) spec.clusterIP = this.#free();
    spec.clusterIPs = [spec.clusterIP];
    // Whose endpoints come from elsewhere may have any kind of address.
    const isOpen = spec.clusterIP === "None" && Object.keys(spec.selector ?? {}).length === 0;
    spec.ipFamilyPolicy ??= isOpen ? "RequireDualStack" : "SingleStack";
    spec.ipFamilies ??= spec.ipFamilyPolicy === "RequireDualStack" ? ["IPv4", "IPv6"] : ["IPv4"];
    if (spec.clusterIP === "None") return undefined;
    const owner = ownerOf(service);
    const holder = this.#taken.get(spec.clusterIP);
    const reason = reserved[spec.clusterIP];
    if (!isAddress(spec.clusterIP) || reason || (holder !== undefined && holder !== owner)) {
      const errors = new FieldErrors();
      const problem = isAddress(spec.clusterIP)
        ? (reason ?? "provided IP is already allocated")
        : "the provided network does not match the current range";
      errors.invalid(
        "spec.clusterIPs",
        [spec.clusterIP],
        `failed to allocate IP ${spec.clusterIP}: ${problem}`,
      );
      errors.throwIfAny("Service", "", service.metadata.name ?? "");
    }
    const address = spec.clusterIP;
    this.#taken.set(address, owner);
    return () => {
      if (holder === undefined) this.#taken.delete(address);
    };
  }

  #free(): string {
    for (let tried = 0; tried < addressCount; tried++) {
      const address = [...networkPrefix, this.#next >> 8, this.#next & 255].join(".");
      this.#next = this.#next === addressCount ? firstFree : this.#next + 1;
      if (!this.#taken.has(address)) return address;
    }
    throw new Error("allocating a cluster IP: all addresses of 10.96.0.0/16 are taken");
  }
}

function isAddress(text: string | undefined): text is string {
  return /^10\.96\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])\.(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])$/.test(
    text ?? "",
  );
}

function ownerOf({ metadata }: UnknownObject): string {
  return metadata.uid ?? `${metadata.namespace}/${metadata.name}`;
}
