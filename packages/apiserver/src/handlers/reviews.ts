import { reviewOwnIdentity, reviewToken } from "../authentication/identity-reviews.ts";
import {
  reviewAccess,
  reviewLocalAccess,
  reviewOwnAccess,
  reviewOwnRules,
} from "../authorization/access-reviews.ts";
import { type Engine } from "../engine.ts";
import { type UserInfo } from "../request.ts";

/** One review to answer: the body with its type, `metadata` and `spec` filled in. */
export interface Question {
  engine: Engine;
  user: UserInfo;
  /** Empty for reviews that are in none. */
  namespace: string;
  body: Record<string, unknown>;
}

/** A kind that is answered and not stored. */
export interface ReviewKind {
  kind: string;
  namespaced?: boolean;
  /** What the answer has besides the question. Throws a `StatusError`. */
  review: (question: Question) => object | Promise<object>;
}

/** By `<group>/<version>/<resource>`. */
export const reviews: Record<string, ReviewKind> = {
  "authentication.k8s.io/v1/selfsubjectreviews": {
    kind: "SelfSubjectReview",
    review: reviewOwnIdentity,
  },
  "authentication.k8s.io/v1/tokenreviews": { kind: "TokenReview", review: reviewToken },
  "authorization.k8s.io/v1/localsubjectaccessreviews": {
    kind: "LocalSubjectAccessReview",
    namespaced: true,
    review: reviewLocalAccess,
  },
  "authorization.k8s.io/v1/selfsubjectaccessreviews": {
    kind: "SelfSubjectAccessReview",
    review: reviewOwnAccess,
  },
  "authorization.k8s.io/v1/selfsubjectrulesreviews": {
    kind: "SelfSubjectRulesReview",
    review: reviewOwnRules,
  },
  "authorization.k8s.io/v1/subjectaccessreviews": {
    kind: "SubjectAccessReview",
    review: reviewAccess,
  },
};
