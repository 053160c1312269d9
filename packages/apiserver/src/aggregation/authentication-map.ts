import { randomUUID, X509Certificate } from "node:crypto";
import { type Clock, type Logger, messageOf } from "@spry/kube";
import { StaleWriteError, type Store } from "../store/store.ts";
import { timestampOf } from "../timestamp.ts";
import { extraPrefix, type FrontProxy, groupHeader, uidHeader, userHeader } from "./front-proxy.ts";

const collection = "/configmaps";
const namespace = "kube-system";
const name = "extension-apiserver-authentication";

interface Dependencies {
  store: Store;
  clock: Clock;
  log: Logger;
  frontProxy: FrontProxy | Promise<FrontProxy> | undefined;
}

/** Keeps the ConfigMap from which aggregated servers learn whose certificates and headers to trust. */
export class AuthenticationMap {
  readonly #deps: Dependencies;
  readonly #data: Record<string, string> = {};
  #running: Promise<void> = Promise.resolve();
  #stop: () => void = () => {};
  #stopped = false;

  constructor(deps: Dependencies) {
    this.#deps = deps;
  }

  start(): void {
    const { store, frontProxy } = this.#deps;
    this.#stop = store.watch(collection, store.revision, ({ current }) => {
      if (current.namespace === namespace && current.name === name) this.#later();
    });
    this.#running = this.#publish(frontProxy);
    this.#later();
  }

  /** `ca`: PEM, whose certificates clients are known by. */
  clientsOf(ca: string): void {
    this.#data["client-ca-file"] = ca;
    this.#later();
  }

  async stop(): Promise<void> {
    this.#stop();
    this.#stopped = true;
    await this.#running;
  }

  async #publish(frontProxy: Dependencies["frontProxy"]): Promise<void> {
    // Who issues it reports why it failed.
    const found = await Promise.resolve(frontProxy).catch(() => undefined);
    if (!found) return;
    const { ca, cert } = found;
    const [, name = ""] = /^CN=(.*)$/m.exec(new X509Certificate(cert).subject) ?? [];
    Object.assign(this.#data, {
      "requestheader-client-ca-file": ca,
      "requestheader-allowed-names": JSON.stringify([name]),
      "requestheader-username-headers": JSON.stringify([userHeader]),
      "requestheader-uid-headers": JSON.stringify([uidHeader]),
      "requestheader-group-headers": JSON.stringify([groupHeader]),
      "requestheader-extra-headers-prefix": JSON.stringify([extraPrefix]),
    });
  }

  #later(): void {
    const { log } = this.#deps;
    this.#running = this.#running
      .then(() => this.#write())
      .catch((error: unknown) => {
        if (error instanceof StaleWriteError) return this.#later();
        log.error({ error: messageOf(error) }, `updating ConfigMap ${namespace}/${name} failed`);
      });
  }

  async #write(): Promise<void> {
    const { store, clock } = this.#deps;
    if (this.#stopped || Object.keys(this.#data).length === 0) return;
    const place = { collection, namespace, name };
    const stored = store.get(place);
    if (!stored) {
      const creationTimestamp = timestampOf(clock.now());
      const metadata = { name, namespace, uid: randomUUID(), creationTimestamp };
      const made = { kind: "ConfigMap", apiVersion: "v1", metadata, data: { ...this.#data } };
      await store.put(place, undefined, made);
      return;
    }
    const present = (stored.object.data ?? {}) as Record<string, string>;
    if (Object.entries(this.#data).every(([key, value]) => present[key] === value)) return;
    await store.put(stored, stored, { ...stored.copy(), data: { ...present, ...this.#data } });
  }
}
