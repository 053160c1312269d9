import { type UnknownObject } from "@spry/kube";
import { type Engine } from "../../engine.ts";
import { type StoredObject } from "../../store/stored-object.ts";
import { StaleWriteError } from "../../store/store.ts";
import { type DefinitionSpec } from "../../resources/catalog.ts";
import { timestampOf } from "../../timestamp.ts";
import { cleanupFinalizer } from "./strategy.ts";

const definitions = "apiextensions.k8s.io/customresourcedefinitions";

/**
 * Keeps the catalog in step with the stored CustomResourceDefinitions, and removes the objects of a
 * definition that is being deleted before it goes. Also gives back the addresses of Services.
 */
export class DefinitionKeeper {
  readonly #engine: Engine;
  #stops: (() => void)[] = [];
  #running: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  start(): void {
    const { store, catalog, addresses } = this.#engine;
    for (const { object, name } of store.list(definitions)) {
      catalog.setDefinition(name, object);
      if (object.metadata.deletionTimestamp) this.#schedule(name);
    }
    this.#stops = [
      store.watch(definitions, store.revision, ({ type, current }) => {
        const { object, name } = current;
        catalog.setDefinition(name, type === "DELETED" ? undefined : object);
        if (type === "DELETED" || !object.metadata.deletionTimestamp) return;
        this.#schedule(name);
      }),
      store.watch("/services", store.revision, ({ type, current }) => {
        if (type === "DELETED") addresses.release(current.object);
      }),
    ];
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const stop of this.#stops) stop();
    await this.#running;
  }

  #schedule(name: string): void {
    this.#running = this.#running
      .then(() => this.#clean(name))
      .catch((error: unknown) => {
        this.#engine.log.error(
          { definition: name, error },
          "removing objects of a definition failed",
        );
      });
  }

  async #clean(name: string): Promise<void> {
    const { store } = this.#engine;
    const stored = store.get({ collection: definitions, namespace: "", name });
    if (this.#stopped || !stored?.object.metadata.finalizers?.includes(cleanupFinalizer)) return;
    const { group, names } = stored.object.spec as DefinitionSpec;
    const collection = `${group}/${names.plural}`;
    for (const each of store.list(collection)) await this.#remove(each);
    if (store.list(collection).length > 0) {
      // Those with finalizers of their own: looked at again when one goes.
      const stop = store.watch(collection, store.revision, ({ type }) => {
        if (type !== "DELETED" || store.list(collection).length > 0) return;
        stop();
        this.#schedule(name);
      });
      this.#stops.push(stop);
      return;
    }
    const next = stored.copy();
    const finalizers = (next.metadata.finalizers ?? []).filter((each) => each !== cleanupFinalizer);
    if (finalizers.length > 0) {
      next.metadata.finalizers = finalizers;
      await this.#write(name, () => store.put(stored, stored, next));
    } else {
      delete next.metadata.finalizers;
      await this.#write(name, () => store.remove(stored, next));
    }
  }

  async #remove(stored: StoredObject): Promise<void> {
    const { store, clock } = this.#engine;
    const { metadata } = stored.object;
    if (!metadata.finalizers?.length) {
      await this.#write(undefined, () => store.remove(stored));
    } else if (!metadata.deletionTimestamp) {
      const next: UnknownObject = stored.copy();
      next.metadata.deletionTimestamp = timestampOf(clock.now());
      next.metadata.deletionGracePeriodSeconds = 0;
      await this.#write(undefined, () => store.put(stored, stored, next));
    }
  }

  async #write(definition: string | undefined, write: () => Promise<unknown>): Promise<void> {
    try {
      await write();
    } catch (error) {
      if (!(error instanceof StaleWriteError)) throw error;
      if (definition) this.#schedule(definition);
    }
  }
}
