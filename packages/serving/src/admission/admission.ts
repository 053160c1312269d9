import {
  type Configuration,
  knative,
  type KService,
  type Revision,
  type Route,
} from "@spry/function";
import {
  type AdmissionRequest,
  type AdmissionResponse,
  allow,
  allowPatched,
  answerReview,
  deepEqual,
  type KubeObject,
  type PatchOperation,
  webhookProblem,
} from "@spry/kube";
import { type Settings } from "../settings/settings.ts";
import {
  withConfigurationDefaults,
  withRevisionDefaults,
  withTrafficDefaults,
} from "./defaults.ts";
import { type FieldErrors } from "./field-error.ts";
import { withUserInfo } from "./metadata.ts";
import { tryTemplate, type TryPod } from "./dry-run.ts";
import {
  type Validate,
  validateConfiguration,
  validateRevision,
  validateRoute,
  validateService,
} from "./validate.ts";

/** All paths of these webhooks begin with it. */
export const servingWebhookPath = "/serving/";
export const servingDefaultingPath = `${servingWebhookPath}defaulting`;
export const servingValidationPath = `${servingWebhookPath}validation`;

type Object = KService | Configuration | Revision | Route;

/** The webhooks of `serving.knative.dev`: `fetch` answers AdmissionReviews v1 by the settings as they are then. */
export function createServingAdmission(
  settings: () => Settings,
  tryPod: TryPod = async () => undefined,
): {
  fetch(request: Request): Promise<Response>;
} {
  return {
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === servingDefaultingPath)
        return answerReview(request, (review) => setDefaults(review, settings()));
      if (pathname === servingValidationPath)
        return answerReview(request, async (review) => {
          const answer = check(review, settings());
          if (!answer.allowed || !isWrite(review) || !isObject(review.object)) return answer;
          const why = await tryTemplate(review, settings(), tryPod);
          return why === undefined ? answer : refusedFor(why);
        });
      return webhookProblem(404, `no webhook at ${pathname}`);
    },
  };
}

/** Runs before the schema is checked: the object may be anything. */
function setDefaults(request: AdmissionRequest, settings: Settings): AdmissionResponse {
  const { object, oldObject } = request;
  if (!isWrite(request) || !isObject(object) || object.metadata.deletionTimestamp) return allow();
  const before = isObject(oldObject) ? oldObject : undefined;
  let spec: unknown;
  try {
    spec = defaulted(request.kind.kind, object, before, settings);
  } catch {
    // A shape that cannot be read: the schema, which is checked next, says what is wrong with it.
    return allow();
  }
  const operations: PatchOperation[] = [];
  if (!deepEqual(spec, object.spec)) operations.push({ op: "replace", path: "/spec", value: spec });
  const written = { ...object, spec } as Object;
  if (isSigned(request.kind.kind, object)) {
    const annotations = withUserInfo(written, before, request.userInfo?.username);
    if (!deepEqual(annotations, object.metadata.annotations))
      operations.push({ op: "add", path: "/metadata/annotations", value: annotations });
  }
  return allowPatched(operations);
}

/** Who wrote it is noted on Services, and on what stands alone: children say it of their owners. */
function isSigned(kind: string, object: Object): boolean {
  if (kind === knative.revisions.kind) return false;
  return kind === knative.services.kind || !object.metadata.ownerReferences?.length;
}

function defaulted(
  kind: string,
  object: Object,
  before: Object | undefined,
  settings: Settings,
): unknown {
  const parent = object.metadata.name ?? object.metadata.generateName ?? "";
  const context = { settings: settings.defaults, parent, isCreate: !before };
  if (kind === knative.services.kind) {
    const service = object as KService;
    const spec = withConfigurationDefaults(service.spec, (before as KService)?.spec, context);
    return withTrafficDefaults(spec, true);
  }
  if (kind === knative.configurations.kind)
    return withConfigurationDefaults(
      (object as Configuration).spec,
      (before as Configuration)?.spec,
      context,
    );
  if (kind === knative.routes.kind) return withTrafficDefaults((object as Route).spec, false);
  // A Revision cannot change, not even by a new default.
  return before ? object.spec : withRevisionDefaults((object as Revision).spec, context);
}

const validations: Record<string, Validate<never>> = {
  [knative.services.kind]: validateService,
  [knative.configurations.kind]: validateConfiguration,
  [knative.revisions.kind]: validateRevision,
  [knative.routes.kind]: validateRoute,
};

function check(request: AdmissionRequest, settings: Settings): AdmissionResponse {
  const { object, oldObject, kind } = request;
  if (!isWrite(request) || !isObject(object) || object.metadata.deletionTimestamp) return allow();
  const validate = Object.hasOwn(validations, kind.kind) ? validations[kind.kind] : undefined;
  if (!validate) return allow();
  const before = isObject(oldObject) ? oldObject : undefined;
  const errors = validate(object as never, before as never, settings);
  return errors.isEmpty ? allow() : refused(errors);
}

/** As Knative's own webhook puts it: a bad request, all findings in one text. */
function refused(errors: FieldErrors): AdmissionResponse {
  return refusedFor(`validation failed: ${errors.toString()}`);
}

function refusedFor(message: string): AdmissionResponse {
  return {
    allowed: false,
    status: {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      code: 400,
      reason: "BadRequest",
      message,
    },
  };
}

function isWrite({ operation, subResource }: AdmissionRequest): boolean {
  return (operation === "CREATE" || operation === "UPDATE") && !subResource;
}

function isObject(object: unknown): object is Object {
  const { metadata, spec } = (object ?? {}) as Partial<KubeObject & { spec: unknown }>;
  return isMap(metadata) && isMap(spec);
}

function isMap(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
