import { copyOf } from "../json-copy.ts";
import { randomUUID } from "node:crypto";
import { type Clock, type Logger, messageOf, StatusError, type UnknownObject } from "@spry/kube";
import jsonPatch from "fast-json-patch";
import { type ResourceRequest } from "../engine.ts";
import { groupVersionOf } from "../resources/resource-type.ts";
import { parseRule } from "../schema/cel-environment.ts";
import { type Store } from "../store/store.ts";
import { type Operation } from "./admission.ts";
import { concerns, type Webhook, type WebhookPhase, webhooksOf } from "./webhook-configuration.ts";
import { WebhookConnections } from "./webhook-connections.ts";

interface AdmissionResponse {
  uid?: string;
  allowed?: boolean;
  status?: { code?: number; message?: string; reason?: string };
  patch?: string;
  patchType?: string;
  warnings?: string[];
}

const defaultTimeoutSeconds = 10;
const maxWarningLength = 256;

/** Calls the webhooks that the objects of admissionregistration.k8s.io/v1 name. */
export class WebhookCaller {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #connections: WebhookConnections;

  constructor(store: Store, log: Logger, clock: Clock) {
    this.#store = store;
    this.#log = log;
    this.#connections = new WebhookConnections(clock);
  }

  /** One after the other, each seeing what the one before made of the object. */
  async mutate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject,
    old: UnknownObject | undefined,
  ): Promise<UnknownObject> {
    let current = object;
    for (const webhook of this.#chosen("mutating", request, operation, current, old)) {
      const response = await this.#call(webhook, request, operation, current, old);
      if (response?.patch) current = patchedBy(webhook, current, response);
    }
    return current;
  }

  /** All at once; the first refusal in the order of the webhooks is told. */
  async validate(
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject | undefined,
    old: UnknownObject | undefined,
  ): Promise<void> {
    const webhooks = this.#chosen("validating", request, operation, object, old);
    if (webhooks.length === 0) return;
    const results = await Promise.allSettled(
      webhooks.map((webhook) => this.#call(webhook, request, operation, object, old)),
    );
    for (const result of results) if (result.status === "rejected") throw result.reason;
  }

  close(): void {
    this.#connections.close();
  }

  #chosen(
    phase: WebhookPhase,
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject | undefined,
    old: UnknownObject | undefined,
  ): Webhook[] {
    return webhooksOf(this.#store, phase).filter((webhook) =>
      concerns(webhook, request, operation, [object, old], this.#store),
    );
  }

  /** Undefined when the webhook is skipped. Throws its refusal. */
  async #call(
    webhook: Webhook,
    request: ResourceRequest,
    operation: Operation,
    object: UnknownObject | undefined,
    old: UnknownObject | undefined,
  ): Promise<AdmissionResponse | undefined> {
    const admission = admissionRequest(request, operation, object, old);
    if (!meetsConditions(webhook, admission)) return undefined;
    if (request.dryRun && !["None", "NoneOnDryRun"].includes(webhook.sideEffects ?? "")) {
      throw new StatusError({
        code: 400,
        message: `admission webhook "${webhook.name}" does not support dry run`,
      });
    }
    let response: AdmissionResponse;
    try {
      response = await this.#exchange(webhook, admission);
    } catch (cause) {
      if (webhook.failurePolicy === "Ignore") {
        this.#log.warn(
          { webhook: webhook.name, error: messageOf(cause) },
          "webhook failed, ignored",
        );
        return undefined;
      }
      const message = `failed calling webhook "${webhook.name}": ${messageOf(cause)}`;
      throw new StatusError(
        { code: 500, message: `Internal error occurred: ${message}` },
        { cause },
      );
    }
    for (const warning of (response.warnings ?? []).slice(0, 16)) {
      request.warnings.push(warning.slice(0, maxWarningLength));
    }
    if (response.allowed !== true) throw refusal(webhook, response);
    return response;
  }

  async #exchange(webhook: Webhook, admission: { uid: string }): Promise<AdmissionResponse> {
    const answer = await this.#connections.post(
      webhook.clientConfig,
      JSON.stringify({
        kind: "AdmissionReview",
        apiVersion: "admission.k8s.io/v1",
        request: admission,
      }),
      (webhook.timeoutSeconds ?? defaultTimeoutSeconds) * 1000,
    );
    const review = JSON.parse(answer) as { kind?: string; response?: AdmissionResponse };
    const { response } = review;
    if (!response) throw new Error("webhook response is absent");
    if (response.uid !== admission.uid) {
      throw new Error(
        `expected response.uid=${JSON.stringify(admission.uid)}, got ${JSON.stringify(response.uid ?? "")}`,
      );
    }
    return response;
  }
}

function admissionRequest(
  request: ResourceRequest,
  operation: Operation,
  object: UnknownObject | undefined,
  old: UnknownObject | undefined,
) {
  const { type, namespace, name, subresource, user } = request;
  const kind = { group: type.group, version: type.version, kind: type.kind };
  const resource = { group: type.group, version: type.version, resource: type.plural };
  return {
    uid: randomUUID(),
    kind,
    resource,
    ...(subresource && { subResource: subresource, requestSubResource: subresource }),
    requestKind: kind,
    requestResource: resource,
    name: name || object?.metadata.name || "",
    ...(type.namespaced && { namespace }),
    operation,
    userInfo: { username: user.name, groups: user.groups, ...(user.uid && { uid: user.uid }) },
    object: object ?? null,
    oldObject: old ?? null,
    dryRun: request.dryRun,
    options: { kind: `${optionsOf[operation]}Options`, apiVersion: "meta.k8s.io/v1" },
    apiVersion: groupVersionOf(type),
  };
}

const optionsOf = { CREATE: "Create", UPDATE: "Update", DELETE: "Delete", CONNECT: "Connect" };

/** All must be true for the webhook to be called; one that fails to evaluate lets it be called. */
function meetsConditions(webhook: Webhook, admission: Record<string, unknown>): boolean {
  return (webhook.matchConditions ?? []).every(({ expression }) => {
    try {
      const { object, oldObject } = admission;
      return parseRule(expression)({ object, oldObject, request: admission }) !== false;
    } catch {
      return true;
    }
  });
}

function patchedBy(
  webhook: Webhook,
  object: UnknownObject,
  response: AdmissionResponse,
): UnknownObject {
  try {
    if (response.patchType !== "JSONPatch")
      throw new Error(`unknown patch type ${response.patchType}`);
    const patch = JSON.parse(
      Buffer.from(response.patch ?? "", "base64").toString(),
    ) as jsonPatch.Operation[];
    const copy = copyOf(object);
    return jsonPatch.applyPatch(copy, patch, true, true, true).newDocument;
  } catch (cause) {
    const message = messageOf(cause).split("\n")[0];
    throw new StatusError(
      {
        code: 500,
        message: `Internal error occurred: patch of webhook "${webhook.name}": ${message}`,
      },
      { cause },
    );
  }
}

function refusal(webhook: Webhook, { status }: AdmissionResponse): StatusError {
  const denied = `admission webhook "${webhook.name}" denied the request`;
  const told = status?.message || status?.reason;
  const code =
    status?.code !== undefined && status.code >= 400 && status.code < 600 ? status.code : 403;
  return new StatusError({
    ...(status?.reason && { reason: status.reason }),
    code,
    message: told ? `${denied}: ${told}` : `${denied} without explanation`,
  });
}
