import {
  defaultFunction,
  deprecationOf,
  findRuntime,
  type Function,
  validateFunction,
} from "@spry/function";
import { deepEqual, type KubeClient } from "@spry/kube";
import { type ControllerConfig } from "../config.ts";
import { conversionPath, convertFunctions } from "./conversion.ts";
import { serverlessDeletionPath, warnOfFunctions } from "./serverless-deletion.ts";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  type AdmissionReview,
  allow,
  allowPatched,
  type PatchOperation,
  refuse,
} from "./admission-review.ts";
import { lastModifierPatch } from "./last-modifier.ts";
import { completeRegistrySecret } from "./registry-secret.ts";

export const defaultingPath = "/defaulting/functions";
export const validationPath = "/validation/function";
export const registrySecretPath = "/defaulting/registry-config-secrets";

/** An object of the largest size, twice (old and new), with room for the envelope. */
const maxBodyLength = 8 * 1024 * 1024;
/** A list is converted in one request. */
const maxConversionLength = 64 * 1024 * 1024;

/**
 * The webhooks: `fetch` answers an AdmissionReview v1 with an AdmissionReview v1, and the same for ConversionReview v1.
 * The client reads the GitRepositories that a v1alpha1 Function names; without one there are no conversions.
 */
export function createAdmission(
  config: ControllerConfig,
  client?: KubeClient,
): {
  fetch(request: Request): Promise<Response>;
} {
  type Review = (request: AdmissionRequest) => AdmissionResponse | Promise<AdmissionResponse>;
  const reviews: Record<string, Review> = {
    [defaultingPath]: setDefaults,
    [validationPath]: (request) => check(request, config),
    [registrySecretPath]: completeRegistrySecret,
    [serverlessDeletionPath]: (request) => (client ? warnOfFunctions(request, client) : allow()),
  };
  return {
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const review = Object.hasOwn(reviews, pathname) ? reviews[pathname] : undefined;
      const converts = client !== undefined && pathname === conversionPath;
      if (!review && !converts) return problem(404, `no webhook at ${pathname}`);
      if (request.method !== "POST") return problem(405, "a review must be sent with POST");
      const body = await readBody(request, converts ? maxConversionLength : maxBodyLength);
      if (body === undefined) return problem(413, "the request body is too large");
      if (!review) return answerConversion(client, body);
      const asked = parseReview(body);
      if (!asked)
        return problem(400, "the request body is not an AdmissionReview of admission.k8s.io/v1");
      const response = { uid: asked.uid, ...(await review(asked)) };
      const kind = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview" };
      return Response.json({ ...kind, response });
    },
  };
}

async function answerConversion(client: KubeClient | undefined, body: string): Promise<Response> {
  const answer = client && (await convertFunctions(client, parseJson(body)));
  return answer
    ? Response.json(answer)
    : problem(400, "the request body is not a ConversionReview of apiextensions.k8s.io/v1");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Runs before the schema is checked: the object may be anything. */
function setDefaults(request: AdmissionRequest): AdmissionResponse {
  const { object } = request;
  if (!isWrite(request) || !isFunction(object)) return allow();
  const { runtime, replicas } = defaultFunction(object).spec;
  const operations = Object.entries({ runtime, replicas }).flatMap(
    ([field, value]): PatchOperation[] => {
      const present = object.spec[field as keyof typeof object.spec];
      if (present === value) return [];
      const op = present === undefined ? "add" : "replace";
      return [{ op, path: `/spec/${field}`, value }];
    },
  );
  return allowPatched([...operations, ...lastModifierPatch(request, object)]);
}

function check(request: AdmissionRequest, config: ControllerConfig): AdmissionResponse {
  const { object, oldObject } = request;
  if (!isWrite(request) || !isFunction(object)) return allow();
  // What is stored may stay: labels, finalizers and deletion must work on it whatever the rules are
  // now.
  const same = isFunction(oldObject) && deepEqual(object.spec, oldObject.spec);
  if (same || object.metadata.deletionTimestamp) return allow();
  const errors = validateFunction(object);
  if (errors.length === 0) return allow(warningsOf(object, config));
  const causes = errors.map(({ path, message }) => {
    return { reason: "FieldValueInvalid", message, field: path };
  });
  return refuse(request, causes);
}

function warningsOf(fn: Function, config: ControllerConfig): string[] {
  const runtime = findRuntime(fn.spec.runtime ?? "");
  if (!runtime) return [];
  const deprecation = deprecationOf(runtime);
  const installed = fn.spec.runtimeImageOverride || config.runtimeImages[runtime.name];
  return [
    ...(deprecation ? [`spec.runtime: ${deprecation}`] : []),
    ...(installed ? [] : [`spec.runtime: ${runtime.name} is not installed on this platform`]),
  ];
}

function isWrite({ operation, subResource }: AdmissionRequest): boolean {
  return (operation === "CREATE" || operation === "UPDATE") && !subResource;
}

function isFunction(object: unknown): object is Function {
  const { metadata, spec } = (object ?? {}) as Partial<Function>;
  return isMap(metadata) && isMap(spec);
}

function isMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Undefined if it is too long, without reading on. */
async function readBody(request: Request, maxLength: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > maxLength) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parseReview(body: string): AdmissionRequest | undefined {
  try {
    const { apiVersion, kind, request } = JSON.parse(body) as AdmissionReview;
    const known = apiVersion === "admission.k8s.io/v1" && kind === "AdmissionReview";
    return known && typeof request?.uid === "string" && isMap(request.kind) ? request : undefined;
  } catch {
    return undefined;
  }
}

function problem(status: number, message: string): Response {
  return Response.json({ message }, { status });
}
