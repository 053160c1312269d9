import {
  defaultFunction,
  deprecationOf,
  type FieldError,
  findRuntime,
  type Function,
  type ScaleConfig,
  validateFunction,
} from "@spry/function";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allow,
  allowPatched,
  answerReview,
  deepEqual,
  type KubeClient,
  type PatchOperation,
  readReviewBody,
  refuse,
  webhookProblem,
} from "@spry/kube";
import { type ControllerConfig } from "../config.ts";
import { conversionPath, convertFunctions } from "./conversion.ts";
import { lastModifierPatch } from "./last-modifier.ts";
import { serverlessDeletionPath, warnOfFunctions } from "./serverless-deletion.ts";
import { completeRegistrySecret } from "./registry-secret.ts";

export const defaultingPath = "/defaulting/functions";
export const validationPath = "/validation/function";
export const registrySecretPath = "/defaulting/registry-config-secrets";

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
    [defaultingPath]: (request) => setDefaults(request, config),
    [validationPath]: (request) => check(request, config),
    [registrySecretPath]: completeRegistrySecret,
    [serverlessDeletionPath]: (request) => (client ? warnOfFunctions(request, client) : allow()),
  };
  return {
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const review = Object.hasOwn(reviews, pathname) ? reviews[pathname] : undefined;
      if (review) return answerReview(request, review);
      if (client && pathname === conversionPath) return answerConversion(client, request);
      return webhookProblem(404, `no webhook at ${pathname}`);
    },
  };
}

async function answerConversion(client: KubeClient, request: Request): Promise<Response> {
  if (request.method !== "POST") return webhookProblem(405, "a review must be sent with POST");
  const body = await readReviewBody(request, maxConversionLength);
  if (body === undefined) return webhookProblem(413, "the request body is too large");
  const answer = await convertFunctions(client, parseJson(body));
  return answer
    ? Response.json(answer)
    : webhookProblem(400, "the request body is not a ConversionReview of apiextensions.k8s.io/v1");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Runs before the schema is checked: the object may be anything. */
function setDefaults(request: AdmissionRequest, config: ControllerConfig): AdmissionResponse {
  const { object } = request;
  if (!isWrite(request) || !isFunction(object)) return allow();
  const scaleConfig = object.spec.scaleConfig ?? defaultScaleOf(request, object, config);
  const scaled = scaleConfig ? { ...object, spec: { ...object.spec, scaleConfig } } : object;
  const { runtime, replicas } = defaultFunction(scaled).spec;
  const desired = { runtime, replicas, ...(scaleConfig && { scaleConfig }) };
  const operations = Object.entries(desired).flatMap(([field, value]): PatchOperation[] => {
    const present = object.spec[field as keyof typeof object.spec];
    if (present === value) return [];
    const op = present === undefined ? "add" : "replace";
    return [{ op, path: `/spec/${field}`, value }];
  });
  return allowPatched([...operations, ...lastModifierPatch(request, object)]);
}

/**
 * The operator's default for new Functions that specify no scale. At this point an omitted `replicas` is 1 already, because the
 * schema has a default. Existing Functions are not changed.
 */
function defaultScaleOf(
  { operation }: AdmissionRequest,
  { spec: { replicas = 1 } }: Function,
  { defaultScaleConfig }: ControllerConfig,
): ScaleConfig | undefined {
  return operation === "CREATE" && replicas === 1 ? defaultScaleConfig : undefined;
}

function check(request: AdmissionRequest, config: ControllerConfig): AdmissionResponse {
  const { object, oldObject } = request;
  if (!isWrite(request) || !isFunction(object)) return allow();
  // What is stored may stay: labels, finalizers and deletion must work on it whatever the rules are
  // now.
  const same = isFunction(oldObject) && deepEqual(object.spec, oldObject.spec);
  if (same || object.metadata.deletionTimestamp) return allow();
  const errors = withoutKept(validateFunction(object), oldObject);
  if (errors.length === 0) return allow(warningsOf(object, config));
  const causes = errors.map(({ path, message }) => {
    return { reason: "FieldValueInvalid", message, field: path };
  });
  return refuse(request, causes);
}

/**
 * A schedule that is stored and has not changed does not prevent changes of the rest: whether a time zone exists depends on the
 * database of the machine.
 */
function withoutKept(errors: FieldError[], oldObject: unknown): FieldError[] {
  const isOfSchedule = ({ path }: FieldError) => path.startsWith("spec.schedules");
  if (!isFunction(oldObject) || !errors.some(isOfSchedule)) return errors;
  const before = new Set(validateFunction(oldObject).map(({ message }) => message));
  return errors.filter((error) => !isOfSchedule(error) || !before.has(error.message));
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
