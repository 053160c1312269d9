import { selectorMatches, type UnknownObject } from "@spry/kube";
import { type Catalog } from "../../resources/catalog.ts";
import { groupVersionOf, type ResourceType } from "../../resources/resource-type.ts";
import { type Store } from "../../store/store.ts";
import { type Conversions } from "../../schema/conversion/conversions.ts";
import { type StoredObject } from "../../store/stored-object.ts";
import { type ParamKind, type ParamRef } from "./policy.ts";

/** Objects that a binding gives to its policy (`CollectParams` of `k8s.io/apiserver`). */
export class ParamSource {
  readonly #store: Store;
  readonly #catalog: Catalog;
  readonly #conversions: Conversions;

  constructor(store: Store, catalog: Catalog, conversions: Conversions) {
    this.#store = store;
    this.#catalog = catalog;
    this.#conversions = conversions;
  }

  /**
   * The policy is evaluated once with each; with `null` when it takes none, never when none can be found. Throws an
   * Error that says what is wrong with the binding.
   */
  async collect(
    kind: ParamKind | undefined,
    ref: ParamRef | undefined,
    namespace: string,
  ): Promise<(UnknownObject | null)[]> {
    if (!kind || !ref) return [null];
    const type = this.#typeOf(kind);
    if (!type.namespaced && ref.namespace) {
      throw new Error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`");
    }
    const within = type.namespaced ? ref.namespace || namespace : "";
    if (type.namespaced && !within) {
      throw new Error(
        "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
      );
    }
    const found = this.#find(type, ref, within);
    if (found.length === 0 && ref.parameterNotFoundAction === "Deny") {
      throw new Error("no params found for policy binding with `Deny` parameterNotFoundAction");
    }
    return Promise.all(found.map((stored) => this.#conversions.presented(type, stored)));
  }

  #typeOf({ apiVersion, kind }: ParamKind): ResourceType {
    const type = this.#catalog
      .all()
      .find((each) => each.kind === kind && groupVersionOf(each) === apiVersion);
    if (type) return type;
    throw new Error(
      `failed to find resource referenced by paramKind: '${apiVersion.includes("/") ? apiVersion : `/${apiVersion}`}, Kind=${kind}'`,
    );
  }

  #find(type: ResourceType, { name, selector }: ParamRef, namespace: string): StoredObject[] {
    const { collection } = type;
    if (name) {
      const found = this.#store.get({ collection, namespace, name });
      return found ? [found] : [];
    }
    return this.#store
      .list(collection, namespace)
      .filter(({ object }) => selectorMatches(selector ?? {}, object.metadata.labels));
  }
}
