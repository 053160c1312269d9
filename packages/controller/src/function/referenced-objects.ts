import { type Function } from "@spry/function";
import {
  type Clock,
  type ConfigMap,
  Informer,
  type KubeClient,
  type Logger,
  type ObjectKey,
  resources,
  type Secret,
  sleep,
} from "@spry/kube";
import { digestOf } from "../digest.ts";

/** One thing that a Function refers to: an object's key, or all of them. */
interface Reference {
  kind: "Secret" | "ConfigMap";
  name: string;
  key?: string;
}

interface Watched {
  informer: Informer<Secret> | Informer<ConfigMap>;
  users: Set<ObjectKey>;
  stop: AbortController;
}

const firstReadTimeoutMs = 5000;

/**
 * The Secrets and ConfigMaps that Functions refer to, and no others: each has a watch of its own,
 * shared by its users and ended with the last of them.
 */
export class ReferencedObjects {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #onChange: (user: ObjectKey) => void;
  readonly #signal: AbortSignal;
  readonly #watched = new Map<string, Watched>();
  readonly #namesOf = new Map<ObjectKey, Set<string>>();

  constructor(options: {
    client: KubeClient;
    clock: Clock;
    log: Logger;
    signal: AbortSignal;
    /** A Function that refers to something that changed. */
    onChange: (user: ObjectKey) => void;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#onChange = options.onChange;
    this.#signal = options.signal;
  }

  /**
   * A digest of the values that the Function refers to; from now on, changes of them trigger a pass. Undefined if it
   * refers to none. What does not exist counts as such.
   */
  async digest(user: ObjectKey, fn: Function): Promise<string | undefined> {
    const references = referencesOf(fn);
    this.#use(user, fn.metadata.namespace ?? "", [...references, ...gitSecretOf(fn)]);
    if (references.length === 0) return undefined;
    const values: unknown[] = [];
    for (const reference of references) {
      const { kind, name, key } = reference;
      const data = await this.#dataOf(fn.metadata.namespace ?? "", reference);
      values.push([kind, name, key ?? null, key === undefined ? data : (data?.[key] ?? null)]);
    }
    return digestOf(values);
  }

  /** The Secret with the Git source's credentials; from now on, its changes trigger a pass. */
  async gitSecret(user: ObjectKey, fn: Function): Promise<Secret | undefined> {
    const [reference] = gitSecretOf(fn);
    if (!reference) return undefined;
    const namespace = fn.metadata.namespace ?? "";
    this.#use(user, namespace, [...referencesOf(fn), reference]);
    return this.#read(namespace, reference) as Promise<Secret | undefined>;
  }

  /** The Function is gone. */
  forget(user: ObjectKey): void {
    this.#use(user, "", []);
  }

  #use(user: ObjectKey, namespace: string, references: readonly Reference[]): void {
    const wanted = new Set(references.map((reference) => idOf(namespace, reference)));
    for (const id of this.#namesOf.get(user) ?? []) if (!wanted.has(id)) this.#release(id, user);
    for (const reference of references) this.#watch(namespace, reference).users.add(user);
    if (wanted.size > 0) this.#namesOf.set(user, wanted);
    else this.#namesOf.delete(user);
  }

  #watch(namespace: string, reference: Reference): Watched {
    const id = idOf(namespace, reference);
    const known = this.#watched.get(id);
    if (known) return known;
    const options = {
      namespace,
      fieldSelector: `metadata.name=${reference.name}`,
      clock: this.#clock,
      log: this.#log,
    };
    const informer =
      reference.kind === "Secret"
        ? new Informer(this.#client, resources.secrets, options)
        : new Informer(this.#client, resources.configMaps, options);
    const watched: Watched = { informer, users: new Set(), stop: new AbortController() };
    this.#watched.set(id, watched);
    informer.onChange(() => {
      for (const user of watched.users) this.#onChange(user);
    });
    void informer.run(AbortSignal.any([this.#signal, watched.stop.signal]));
    return watched;
  }

  #release(id: string, user: ObjectKey): void {
    const watched = this.#watched.get(id);
    watched?.users.delete(user);
    if (!watched || watched.users.size > 0) return;
    watched.stop.abort();
    this.#watched.delete(id);
  }

  async #dataOf(namespace: string, reference: Reference) {
    const object = await this.#read(namespace, reference);
    if (!object) return null;
    const binary = "binaryData" in object ? object.binaryData : undefined;
    return { ...binary, ...object.data };
  }

  async #read(namespace: string, reference: Reference): Promise<Secret | ConfigMap | undefined> {
    const { informer } = this.#watch(namespace, reference);
    if (!informer.hasSynced) {
      await Promise.race([informer.synced, sleep(this.#clock, firstReadTimeoutMs, this.#signal)]);
      const { kind, name } = reference;
      if (!informer.hasSynced)
        throw new Error(`reading ${kind} ${namespace}/${name}: no response yet`);
    }
    return informer.get(`${namespace}/${reference.name}`);
  }
}

function idOf(namespace: string, { kind, name }: Reference): string {
  return `${kind}/${namespace}/${name}`;
}

/** Not part of what Pods are started with: another password for Git restarts nothing. */
function gitSecretOf(fn: Function): Reference[] {
  const name = fn.spec.source.gitRepository?.auth?.secretName;
  return name ? [{ kind: "Secret", name }] : [];
}

/** What a Function's variables and mounts refer to, in a fixed order. */
export function referencesOf(fn: Function): Reference[] {
  const references: Reference[] = [];
  for (const { valueFrom } of fn.spec.env ?? []) {
    const { secretKeyRef, configMapKeyRef } = valueFrom ?? {};
    if (secretKeyRef?.name) {
      references.push({ kind: "Secret", name: secretKeyRef.name, key: secretKeyRef.key });
    }
    if (configMapKeyRef?.name) {
      references.push({ kind: "ConfigMap", name: configMapKeyRef.name, key: configMapKeyRef.key });
    }
  }
  for (const { secretName } of fn.spec.secretMounts ?? []) {
    references.push({ kind: "Secret", name: secretName });
  }
  return references;
}
