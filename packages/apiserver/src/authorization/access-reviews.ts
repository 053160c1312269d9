/** Responds whether a user may do something (`authorization.k8s.io/v1`); nothing is stored. */
import { type UserInfo } from "../request.ts";
import { badRequest } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { type Question } from "../handlers/reviews.ts";
import { type Attributes } from "./attributes.ts";

interface ReviewSpec {
  user?: string;
  groups?: string[];
  uid?: string;
  extra?: Record<string, string[]>;
  resourceAttributes?: {
    verb?: string;
    group?: string;
    resource?: string;
    subresource?: string;
    namespace?: string;
    name?: string;
  };
  nonResourceAttributes?: { verb?: string; path?: string };
}

/** `SelfSubjectAccessReview`: may I? */
export function reviewOwnAccess(question: Question): object {
  const spec = question.body.spec as ReviewSpec;
  const errors = new FieldErrors();
  checkAttributes(spec, errors);
  checkMetadata(question, "must be empty", errors);
  errors.throwIfAny("", "authorization.k8s.io", "");
  return { status: access(question, spec, question.user) };
}

/** `SubjectAccessReview`: may they? */
export function reviewAccess(question: Question): object {
  const spec = question.body.spec as ReviewSpec;
  const errors = new FieldErrors();
  checkSubject(spec, errors);
  checkMetadata(question, "must be empty", errors);
  errors.throwIfAny("", "authorization.k8s.io", "");
  return { status: access(question, spec, subjectOf(spec)) };
}

/** `LocalSubjectAccessReview`: may they, in this Namespace? */
export function reviewLocalAccess(question: Question): object {
  const { namespace, body } = question;
  const spec = body.spec as ReviewSpec;
  const metadata = (body.metadata ?? {}) as { namespace?: string };
  if ((metadata.namespace ??= namespace) !== namespace) {
    throw badRequest(
      "the namespace of the provided object does not match the namespace sent on the request",
    );
  }
  const errors = new FieldErrors();
  checkSubject(spec, errors);
  checkMetadata(question, "must be empty except for namespace", errors);
  const asked = spec.resourceAttributes;
  if (asked && (asked.namespace ?? "") !== namespace) {
    const field = "spec.resourceAttributes.namespace";
    errors.invalid(field, asked.namespace ?? "", "must match metadata.namespace");
  }
  if (spec.nonResourceAttributes) {
    const detail = "disallowed on this kind of request";
    errors.invalid("spec.nonResourceAttributes", goForm(spec.nonResourceAttributes), detail);
  }
  errors.throwIfAny("", "authorization.k8s.io", "");
  return { metadata, status: access(question, spec, subjectOf(spec)) };
}

/** `SelfSubjectRulesReview`: what may I in this Namespace? */
export function reviewOwnRules({ engine, user, body }: Question): object {
  const { namespace } = body.spec as { namespace?: string };
  if (!namespace) throw badRequest("no namespace on request");
  const { rules, problems } = engine.authorizer.rulesFor(user, namespace);
  const resourceRules = rules
    .filter(({ resources }) => resources?.length)
    .map(({ verbs, apiGroups, resources, resourceNames }) => ({
      verbs,
      apiGroups,
      resources,
      ...(resourceNames && { resourceNames }),
    }));
  const nonResourceRules = rules
    .filter(({ nonResourceURLs }) => nonResourceURLs?.length)
    .map(({ verbs, nonResourceURLs }) => ({ verbs, nonResourceURLs }));
  const evaluationError = problems.join(", ");
  return {
    spec: {},
    status: {
      resourceRules,
      nonResourceRules,
      incomplete: false,
      ...(evaluationError && { evaluationError }),
    },
  };
}

function access({ engine }: Question, spec: ReviewSpec, user: UserInfo): object {
  const { allowed, reason } = engine.authorizer.decide(attributesFrom(spec, user));
  return { allowed, ...(reason && { reason }) };
}

function attributesFrom(spec: ReviewSpec, user: UserInfo): Attributes {
  const { resourceAttributes, nonResourceAttributes } = spec;
  if (!resourceAttributes) return { user, verb: "", path: "", ...nonResourceAttributes };
  const empty = { verb: "", group: "", resource: "", subresource: "", namespace: "", name: "" };
  return { ...empty, ...resourceAttributes, user };
}

function subjectOf({ user = "", groups = [], uid, extra }: ReviewSpec): UserInfo {
  return { name: user, groups, ...(uid && { uid }), ...(extra && { extra }) };
}

/** `pkg/apis/authorization/validation`. */
function checkSubject(spec: ReviewSpec, errors: FieldErrors): void {
  checkAttributes(spec, errors);
  if (spec.user || spec.groups?.length) return;
  errors.invalid("spec.user", "", "at least one of user or group must be specified");
}

function checkAttributes(
  { resourceAttributes, nonResourceAttributes }: ReviewSpec,
  errors: FieldErrors,
): void {
  if (resourceAttributes && nonResourceAttributes) {
    const detail = "cannot be specified in combination with resourceAttributes";
    errors.invalid("spec.nonResourceAttributes", goForm(nonResourceAttributes), detail);
  }
  if (!resourceAttributes && !nonResourceAttributes) {
    const detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    errors.invalid("spec.resourceAttributes", null, detail);
  }
}

/** As Go prints the structure. */
function goForm({
  path = "",
  verb = "",
}: NonNullable<ReviewSpec["nonResourceAttributes"]>): object {
  return { Path: path, Verb: verb };
}

function checkMetadata({ body }: Question, detail: string, errors: FieldErrors): void {
  const {
    managedFields: _,
    namespace,
    ...metadata
  } = (body.metadata ?? {}) as Record<string, unknown>;
  const rest = detail.includes("namespace")
    ? metadata
    : { ...metadata, ...(namespace ? { namespace } : {}) };
  if (Object.keys(rest).length > 0) errors.invalid("metadata", rest, detail);
}
