/** Responds with the identity of a user (`authentication.k8s.io/v1`); nothing is stored. */
import { type UserInfo } from "../request.ts";
import { badRequest } from "../errors.ts";
import { type Question } from "../handlers/reviews.ts";
import { timestampOf } from "../timestamp.ts";
import { InvalidTokenError } from "./invalid-token-error.ts";

/** `SelfSubjectReview`: who am I? */
export function reviewOwnIdentity({ engine, user }: Question): object {
  return {
    metadata: { creationTimestamp: timestampOf(engine.clock.now()) },
    spec: undefined,
    status: { userInfo: presented(user) },
  };
}

/** `TokenReview`: whose token is this? */
export async function reviewToken({ engine, body }: Question): Promise<object> {
  const { token, audiences } = body.spec as { token?: string; audiences?: string[] };
  if (!token) throw badRequest("token is required for TokenReview in authentication");
  try {
    const found = await engine.authenticator.tokens.verify(token, audiences);
    const status = { authenticated: true, user: presented(found.user), audiences: found.audiences };
    return { status };
  } catch (error) {
    if (!(error instanceof InvalidTokenError)) throw error;
    return { status: { user: {}, error: error.message } };
  }
}

function presented({ name, groups, uid, extra }: UserInfo): object {
  return { username: name, ...(uid && { uid }), groups, ...(extra && { extra }) };
}
