import { type UnknownObject } from "@spry/kube";
import { type ResourceRequest } from "../engine.ts";
import { forbidden, notFound } from "../errors.ts";
import { type Store } from "../store/store.ts";
import { type WebhookCaller } from "./webhook-caller.ts";

export type Operation = "CREATE" | "UPDATE" | "DELETE" | "CONNECT";

const immortalNamespaces = ["default", "kube-system", "kube-public"];

/** What stands between a valid request and the store. */
export class Admission {
  readonly #store: Store;
  readonly #webhooks: WebhookCaller;

  constructor(store: Store, webhooks: WebhookCaller) {
    this.#store = store;
    this.#webhooks = webhooks;
  }

  /** Objects live in namespaces that exist and will go on existing. */
  checkNamespace({ type, namespace, name }: ResourceRequest): void {
    if (!type.namespaced) return;
    const found = this.#store.get({ collection: "/namespaces", namespace: "", name: namespace });
    if (!found) throw notFound({ group: "", plural: "namespaces" }, namespace);
    if (!found.object.metadata.deletionTimestamp) return;
    throw forbidden(
      type,
      name,
      `unable to create new content in namespace ${namespace} because it is being terminated`,
      [
        {
          reason: "NamespaceTerminating",
          message: `namespace ${namespace} is being terminated`,
          field: "metadata.namespace",
        },
      ],
    );
  }

  checkDeletion({ type, name }: ResourceRequest): void {
    if (type.collection === "/namespaces" && immortalNamespaces.includes(name)) {
      throw forbidden(type, name, "this namespace may not be deleted");
    }
  }

  /** The object as the mutating webhooks leave it; the given one when they change nothing. */
  async mutate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject,
    old: UnknownObject | undefined,
  ): Promise<UnknownObject> {
    return this.#webhooks.mutate(request, operation, object, old);
  }

  /** Throws the refusal of a validating webhook. */
  async validate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject | undefined,
    old: UnknownObject | undefined,
  ): Promise<void> {
    await this.#webhooks.validate(request, operation, object, old);
  }
}
