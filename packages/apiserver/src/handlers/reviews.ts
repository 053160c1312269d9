import { StatusError } from "@spry/kube";
import { authorize } from "../authorization.ts";
import { type UserInfo } from "../engine.ts";
import { badRequest } from "../errors.ts";
import { type RequestInfo } from "../http/request-info.ts";

/** Questions that are answered and not stored: `<group>/<version>/<resource>`. */
export type Review = (body: Record<string, unknown>, user: UserInfo) => Record<string, unknown>;

export const reviews: Record<string, { kind: string; review: Review }> = {
  "authorization.k8s.io/v1/selfsubjectaccessreviews": {
    kind: "SelfSubjectAccessReview",
    review: (body, user) => ({ ...body, status: access(body, user) }),
  },
  "authentication.k8s.io/v1/selfsubjectreviews": {
    kind: "SelfSubjectReview",
    review: (body, user) => ({
      ...body,
      status: { userInfo: { username: user.name, groups: user.groups } },
    }),
  },
};

interface ResourceAttributes {
  verb?: string;
  group?: string;
  version?: string;
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
}

const methods: Record<string, string> = {
  create: "POST",
  update: "PUT",
  patch: "PATCH",
  delete: "DELETE",
  deletecollection: "DELETE",
};

/** Whether the user may do what the review asks about. */
function access(body: Record<string, unknown>, user: UserInfo): object {
  const { resourceAttributes, nonResourceAttributes } = (body.spec ?? {}) as {
    resourceAttributes?: ResourceAttributes;
    nonResourceAttributes?: { verb?: string; path?: string };
  };
  if (!resourceAttributes === !nonResourceAttributes) {
    throw badRequest(
      "exactly one of nonResourceAttributes or resourceAttributes must be specified",
    );
  }
  const verb = resourceAttributes?.verb ?? nonResourceAttributes?.verb ?? "get";
  const path = nonResourceAttributes?.path ?? "/";
  try {
    authorize(user, methods[verb] ?? "GET", path, infoOf(resourceAttributes));
    return { allowed: true };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return { allowed: false, reason: error.message };
  }
}

function infoOf(attributes: ResourceAttributes | undefined): RequestInfo {
  const { group = "", version = "*", resource, namespace, name } = attributes ?? {};
  return {
    group,
    version,
    rest: [],
    ...(resource !== undefined && { resource }),
    ...(namespace && { namespace }),
    ...(name && { name }),
  };
}
