import { randomInt } from "node:crypto";
import { type UnknownObject } from "@spry/kube";
import { FieldErrors } from "../../field-errors.ts";

interface ServicePort {
  port?: number;
  protocol?: string;
  nodePort?: number;
}

export interface PortedSpec {
  type?: string;
  ports?: ServicePort[];
  allocateLoadBalancerNodePorts?: boolean;
}

const first = 30_000;
const last = 32_767;
const rangeProblem = `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;

/** Whether the Service's ports are to be reached at every node too. */
export function needsNodePorts(spec: PortedSpec): boolean {
  if (spec.type === "NodePort") return true;
  return spec.type === "LoadBalancer" && spec.allocateLoadBalancerNodePorts !== false;
}

/** Gives the ports of Services node ports that no other Service has (`pkg/registry/core/service`). */
export class NodePorts {
  /** `TCP/30000` → whose it is. */
  readonly #taken = new Map<string, string>();

  adopt(service: UnknownObject, owner: string): void {
    for (const key of keysOf(service)) this.#taken.set(key, owner);
  }

  release(service: UnknownObject, owner: string): void {
    for (const key of keysOf(service)) {
      if (this.#taken.get(key) === owner) this.#taken.delete(key);
    }
  }

  /** Sets the ports that a Service leaves open, in place. Throws a `StatusError` 422 for one that is taken. */
  allocate(service: UnknownObject, owner: string): void {
    const spec = (service.spec ?? {}) as PortedSpec;
    if (!needsNodePorts(spec)) return;
    const errors = new FieldErrors();
    for (const [index, port] of (spec.ports ?? []).entries()) {
      if (!port.nodePort) continue;
      const field = `spec.ports[${index}].nodePort`;
      if (port.nodePort < first || port.nodePort > last)
        errors.invalid(field, port.nodePort, rangeProblem);
      else if (![undefined, owner].includes(this.#taken.get(keyOf(port))))
        errors.invalid(field, port.nodePort, "provided port is already allocated");
    }
    errors.throwIfAny("Service", "", service.metadata.name ?? "");
    this.adopt(service, owner);
    const named = new Map<number | undefined, number>();
    for (const port of spec.ports ?? []) {
      // The same port of another protocol is reached at the same place.
      const shared = named.get(port.port);
      const isFree = shared && !this.#taken.has(keyOf({ ...port, nodePort: shared }));
      port.nodePort ||= isFree ? shared : this.#free(port);
      named.set(port.port, port.nodePort);
      this.#taken.set(keyOf(port), owner);
    }
  }

  #free(port: ServicePort): number {
    const count = last - first + 1;
    const start = randomInt(count);
    for (let tried = 0; tried < count; tried++) {
      const nodePort = first + ((start + tried) % count);
      if (!this.#taken.has(keyOf({ ...port, nodePort }))) return nodePort;
    }
    throw new Error(`allocating a node port: all of ${first}-${last} are taken`);
  }
}

function keyOf({ protocol = "TCP", nodePort }: ServicePort): string {
  return `${protocol}/${nodePort}`;
}

function keysOf({ spec }: UnknownObject): string[] {
  const { ports = [] } = (spec ?? {}) as PortedSpec;
  return ports.filter(({ nodePort }) => nodePort).map(keyOf);
}

/** On an update: the node ports that the Service has already, where the client leaves them out or no longer needs them. */
export function keepNodePorts(spec: PortedSpec, old: PortedSpec): void {
  const had = needsNodePorts(old);
  const needs = needsNodePorts(spec);
  for (const port of spec.ports ?? []) {
    const same = (each: ServicePort) => each.port === port.port && each.protocol === port.protocol;
    const before = old.ports?.find(same)?.nodePort;
    if (needs && had && before && !port.nodePort) port.nodePort = before;
    if (!needs && had && before && port.nodePort === before) delete port.nodePort;
  }
}
