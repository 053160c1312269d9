import { type Logger, StatusError, type UnknownObject } from "@spry/kube";
import { badRequest, forbidden, internalError, ownMessageOf } from "../../errors.ts";
import { type Catalog } from "../../resources/catalog.ts";
import { type ResourceType } from "../../resources/resource-type.ts";
import { type Store } from "../../store/store.ts";
import { type AdmissionAttributes, admissionRequest } from "../attributes.ts";
import { bindingsOf } from "../expressions/bindings.ts";
import { meetsConditions } from "../expressions/match-conditions.ts";
import { type Matcher } from "../matching.ts";
import { type ObjectVersions } from "../object-versions.ts";
import { type Reinvocation } from "../reinvocation.ts";
import { patchedByWebhook } from "./webhook-patch.ts";
import { type AdmissionResponse, refusal, responseOf, reviewOf } from "./review.ts";
import { type NamedWebhook, type Webhook, type WebhookPhase, webhooksOf } from "./webhook.ts";
import { type WebhookConnections } from "./webhook-connections.ts";

const defaultTimeoutSeconds = 10;
const maxAuditAnnotations = 64;
const maxAuditValue = 10 * 1024;

/** A webhook that wants to see a request, and in which version. */
interface Invocation extends NamedWebhook {
  type: ResourceType;
  attributes: AdmissionAttributes;
}

interface AdmissionContext {
  store: Store;
  catalog: Catalog;
  matcher: Matcher;
  versions: ObjectVersions;
  connections: WebhookConnections;
  log: Logger;
}

/** Calls the webhooks that the objects of admissionregistration.k8s.io/v1 name. */
export class WebhookCaller {
  readonly #context: AdmissionContext;

  constructor(context: AdmissionContext) {
    this.#context = context;
  }

  /** One after the other, each seeing what the one before made of the object. */
  async mutate(
    attributes: AdmissionAttributes,
    reinvocation: Reinvocation,
  ): Promise<UnknownObject | undefined> {
    const current = { ...attributes };
    for (const { key, webhook } of this.#webhooks("mutating", attributes)) {
      const invocation = await this.#invocation({ key, webhook }, current);
      if (!invocation || !reinvocation.mayCall(key)) continue;
      const response = await this.#call(invocation, "mutating");
      if (response?.patch) {
        const before = current.object;
        current.object = await this.#patched(invocation, response, current);
        reinvocation.noteOutput(before, current.object);
      }
      reinvocation.noteCall(key, webhook.reinvocationPolicy === "IfNeeded");
    }
    return current.object;
  }

  /** All at once; of several refusals, the first in the order of the webhooks is reported. */
  async validate(attributes: AdmissionAttributes): Promise<void> {
    const webhooks = this.#webhooks("validating", attributes);
    if (webhooks.length === 0) return;
    const invocations: Invocation[] = [];
    for (const each of webhooks) {
      const invocation = await this.#invocation(each, attributes);
      if (invocation) invocations.push(invocation);
    }
    const results = await Promise.allSettled(
      invocations.map((invocation) => this.#call(invocation, "validating")),
    );
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  /** A broken webhook must not stand in the way of removing it. */
  #webhooks(phase: WebhookPhase, { request }: AdmissionAttributes): NamedWebhook[] {
    if (request.type.group === "admissionregistration.k8s.io") return [];
    return webhooksOf(this.#context.store, phase);
  }

  /** Undefined when the request is none of the webhook's business. */
  async #invocation(
    { key, webhook }: NamedWebhook,
    attributes: AdmissionAttributes,
  ): Promise<Invocation | undefined> {
    const { matcher, versions } = this.#context;
    const { rules = [], matchPolicy, namespaceSelector, objectSelector } = webhook;
    const criteria = { rules, matchPolicy, namespaceSelector, objectSelector };
    const type = matcher.match(criteria, attributes);
    if (!type) return undefined;
    const converted = await versions.attributesIn(attributes, type);
    try {
      const bindings = () => bindingsOf(converted, type);
      if (!meetsConditions(webhook.matchConditions, webhook.failurePolicy, bindings))
        return undefined;
    } catch (error) {
      throw forbidden(attributes.request.type, attributes.request.name, ownMessageOf(error));
    }
    return { key, webhook, type, attributes: converted };
  }

  /** Undefined when the webhook fails and may be left out. Throws its refusal. */
  async #call(invocation: Invocation, phase: WebhookPhase): Promise<AdmissionResponse | undefined> {
    const { webhook, attributes } = invocation;
    const { request } = attributes;
    if (request.dryRun && !["None", "NoneOnDryRun"].includes(webhook.sideEffects ?? "")) {
      throw badRequest(
        `admission webhook ${JSON.stringify(webhook.name)} does not support dry run`,
      );
    }
    let response: AdmissionResponse;
    try {
      response = await this.#exchange(invocation, phase);
    } catch (cause) {
      this.#fail(webhook, cause);
      return undefined;
    }
    request.warnings.push(...(response.warnings ?? []).filter((each) => each !== ""));
    this.#audit(webhook, response);
    if (response.allowed !== true) throw refusal(webhook.name, response);
    return response;
  }

  async #exchange({ webhook, type, attributes }: Invocation, phase: WebhookPhase) {
    const review = reviewOf(
      admissionRequest(attributes, type),
      webhook.admissionReviewVersions ?? ["v1"],
    );
    const timeout = webhook.timeoutSeconds ?? defaultTimeoutSeconds;
    let answer: string;
    try {
      answer = await this.#context.connections.post(webhook.clientConfig, review.body, timeout);
    } catch (cause) {
      throw new Error(`failed to call webhook: ${ownMessageOf(cause)}`, { cause: cause });
    }
    return responseOf(answer, review, phase);
  }

  /** A failure of the webhook itself, not its refusal. */
  #fail(webhook: Webhook, cause: unknown): void {
    if (webhook.failurePolicy === "Ignore") {
      this.#context.log.warn(
        { webhook: webhook.name, error: ownMessageOf(cause) },
        "webhook failed, ignored",
      );
      return;
    }
    throw internalError(
      `failed calling webhook ${JSON.stringify(webhook.name)}: ${ownMessageOf(cause)}`,
      { cause },
    );
  }

  async #patched(
    { webhook, type }: Invocation,
    response: AdmissionResponse,
    current: AdmissionAttributes,
  ): Promise<UnknownObject> {
    const { versions } = this.#context;
    const { object } = await versions.attributesIn(current, type);
    if (!object) {
      throw internalError(
        `admission webhook ${JSON.stringify(webhook.name)} attempted to modify the object, which is not supported for this operation`,
      );
    }
    try {
      const patched = patchedByWebhook(type, object, response);
      return await versions.convert(patched, type, current.request.type);
    } catch (cause) {
      if (cause instanceof StatusError) throw cause;
      this.#fail(webhook, cause);
      return object;
    }
  }

  /** There is no audit log here: they can be read in the server's own. */
  #audit({ name }: Webhook, { auditAnnotations }: AdmissionResponse): void {
    const entries = Object.entries(auditAnnotations ?? {}).slice(0, maxAuditAnnotations);
    if (entries.length === 0) return;
    const annotations = Object.fromEntries(
      entries.map(([key, value]) => [`${name}/${key}`, value.slice(0, maxAuditValue)]),
    );
    this.#context.log.debug({ webhook: name, annotations }, "audit annotations of a webhook");
  }
}
