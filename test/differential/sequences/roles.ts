import { controllerOf, type KubeObject } from "@spry/kube";

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const time = /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2})/g;
const podAddress = /\b10\.244\.\d+\.\d+\b/g;
const serviceAddress = /\b10\.96\.\d+\.\d+\b/g;
const tokenVolume = /kube-api-access-[a-z0-9]{5}/g;

/** Names made by chance or from the time, and what they stand for in a case: the second ReplicaSet of a Deployment, say. */
export class Roles {
  readonly #roles = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  meet({ kind, metadata }: KubeObject): void {
    const { name = "", labels } = metadata;
    const owner = controllerOf({ metadata });
    if (kind === "ReplicaSet" && owner) {
      // Also what the label and the selector say, of which the name is made.
      const hash = labels?.["pod-template-hash"];
      if (hash) this.#number(hash, `${owner.name} rs`, "rs");
    } else if (kind === "Job" && owner) {
      this.#number(name, `${owner.name} job`, `${owner.name}-job`);
    } else if ((kind === "Pod" || kind === "EndpointSlice") && owner) {
      this.#roles.set(name, `${name.slice(0, -5)}${kind === "Pod" ? "pod" : "slice"}`);
    }
  }

  /** The value without what two clusters choose for themselves. */
  normalised<T>(value: T): T {
    let text = JSON.stringify(value);
    const longestFirst = [...this.#roles].sort(([a], [b]) => b.length - a.length);
    for (const [name, role] of longestFirst) text = text.replaceAll(name, role);
    // Roles of Pods are recognized by names in which the hash of their ReplicaSet stands.
    for (const [name, role] of longestFirst) text = text.replaceAll(name, role);
    text = text
      .replaceAll(uuid, "<uid>")
      .replaceAll(time, "<time>")
      .replaceAll(podAddress, "<address>")
      .replaceAll(serviceAddress, "<address>")
      .replaceAll(tokenVolume, "kube-api-access");
    return JSON.parse(text) as T;
  }

  #number(name: string, of: string, role: string): void {
    if (this.#roles.has(name)) return;
    const count = (this.#counts.get(of) ?? 0) + 1;
    this.#counts.set(of, count);
    this.#roles.set(name, `${role}${count}`);
  }
}
