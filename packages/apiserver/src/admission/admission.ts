import { type Clock, type Logger, type UnknownObject } from "@spry/kube";
import { admitServiceAccount } from "../authentication/service-account-admission.ts";
import { type ResourceRequest } from "../request.ts";
import { forbidden, notFound } from "../errors.ts";
import { type Catalog } from "../resources/catalog.ts";
import { type Conversions } from "../schema/conversion/conversions.ts";
import { type Store } from "../store/store.ts";
import { type AdmissionAttributes, type Operation } from "./attributes.ts";
import { LimitRanger } from "./limits/limit-range.ts";
import { NetworkLimits } from "./limits/network-limits.ts";
import { type Decider } from "./expressions/cel-authorizer.ts";
import { Matcher } from "./matching.ts";
import { ObjectVersions } from "./object-versions.ts";
import { ParamSource } from "./policies/params.ts";
import { ValidatingPolicies } from "./policies/validating-policies.ts";
import { PodSecurity } from "./pod-security/pod-security.ts";
import { type PodSecurityLevel } from "./pod-security/policy.ts";
import { PriorityAdmission } from "./priority/priority.ts";
import { QuotaAdmission } from "./quota/resource-quota.ts";
import { Reinvocation } from "./reinvocation.ts";
import { WebhookCaller } from "./webhooks/webhook-caller.ts";
import { type WebhookConnections } from "./webhooks/webhook-connections.ts";

export { type Operation } from "./attributes.ts";

const immortalNamespaces = ["default", "kube-system", "kube-public"];

interface AdmissionContext {
  store: Store;
  catalog: Catalog;
  authorizer: Decider;
  connections: WebhookConnections;
  conversions: Conversions;
  clock: Clock;
  log: Logger;
  /** Of namespaces without a label for it. */
  podSecurity: PodSecurityLevel;
}

/** What stands between a valid request and the store. */
export class Admission {
  readonly #store: Store;
  readonly #webhooks: WebhookCaller;
  readonly #limits: LimitRanger;
  readonly #networkLimits: NetworkLimits;
  readonly #quota: QuotaAdmission;
  readonly #podSecurity: PodSecurity;
  readonly #priorities: PriorityAdmission;
  readonly #validatingPolicies: ValidatingPolicies;

  constructor(context: AdmissionContext) {
    const { store, catalog, authorizer, connections, conversions, clock, log } = context;
    this.#store = store;
    this.#limits = new LimitRanger(store);
    this.#priorities = new PriorityAdmission(store);
    this.#podSecurity = new PodSecurity(store, context.podSecurity);
    this.#networkLimits = new NetworkLimits(store);
    this.#quota = new QuotaAdmission(store, catalog, clock);
    const matcher = new Matcher(store, catalog);
    const versions = new ObjectVersions(conversions);
    const params = new ParamSource(store, catalog, conversions);
    const policies = { store, matcher, versions, params, authorizer, log };
    this.#validatingPolicies = new ValidatingPolicies(policies);
    this.#webhooks = new WebhookCaller({ store, catalog, matcher, versions, connections, log });
  }

  /** Objects are in namespaces that exist and are not being deleted. */
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

  /** The object as mutating admission leaves it; the given one may be changed. */
  async mutate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject,
    old: UnknownObject | undefined,
  ): Promise<UnknownObject> {
    const attributes: AdmissionAttributes = { request, operation, object, old };
    const reinvocation = new Reinvocation();
    const first = await this.#mutateOnce(attributes, reinvocation);
    if (!reinvocation.isNeeded) return first ?? object;
    reinvocation.beginSecond(first);
    return (await this.#mutateOnce({ ...attributes, object: first }, reinvocation)) ?? object;
  }

  async #mutateOnce(
    attributes: AdmissionAttributes,
    reinvocation: Reinvocation,
  ): Promise<UnknownObject | undefined> {
    this.#limits.mutate(attributes);
    const { request, operation, object } = attributes;
    if (operation === "CREATE" && object) await admitServiceAccount(this.#store, request, object);
    this.#priorities.mutate(attributes);
    reinvocation.noteInput(attributes.object);
    return this.#webhooks.mutate(attributes, reinvocation);
  }

  /** Throws the refusal of validating admission. */
  async validate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject | undefined,
    old: UnknownObject | undefined,
    deletion?: object,
  ): Promise<void> {
    const attributes = { request, operation, object, old, deletion };
    this.#limits.validate(attributes);
    this.#podSecurity.validate(attributes);
    this.#priorities.validate(attributes);
    await this.#validatingPolicies.validate(attributes);
    await this.#webhooks.validate(attributes);
  }

  /**
   * Counts the object towards the quotas of its namespace: to be called right before it is written,
   * without an await between. Throws a `StatusError` 403 when one would be exceeded.
   */
  charge(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject,
    old: UnknownObject | undefined,
  ): void {
    this.#networkLimits.charge({ request, operation, object, old });
    this.#quota.charge({ request, operation, object, old });
  }
}
