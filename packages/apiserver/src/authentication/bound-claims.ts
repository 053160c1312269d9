import { type UserInfo } from "../request.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { type Store } from "../store/store.ts";
import { serviceAccountUser } from "./service-account-user.ts";
import { InvalidTokenError } from "./invalid-token-error.ts";
import { issuer } from "./issuer.ts";

export interface ObjectRef {
  name: string;
  uid: string;
}

/** The claims of a token that TokenRequest has issued (`pkg/serviceaccount/claims.go`). */
export interface BoundClaims {
  iss: string;
  sub: string;
  aud: string[];
  exp: number;
  iat: number;
  nbf: number;
  jti: string;
  "kubernetes.io": {
    namespace: string;
    serviceaccount: ObjectRef;
    /** What the token is bound to; a Pod's token names the Pod's Node besides. */
    pod?: ObjectRef;
    secret?: ObjectRef;
    node?: ObjectRef;
  };
}

const invalidated = "service account token has been invalidated";
/** An object that waits for its deletion is good for so long. */
const deletionLeewaySeconds = 60;

export function isBound(claims: object): claims is BoundClaims {
  return (claims as BoundClaims).iss === issuer && "kubernetes.io" in claims;
}

/** Throws an `InvalidTokenError` unless the ServiceAccount and what the token is bound to are there. */
export function boundUser(store: Store, claims: BoundClaims, now: number): UserInfo {
  const { namespace, serviceaccount, pod, secret, node } = claims["kubernetes.io"];
  const isGone = ({ object: { metadata } }: StoredObject) =>
    metadata.deletionTimestamp !== undefined &&
    Date.parse(metadata.deletionTimestamp) / 1000 < now - deletionLeewaySeconds;
  const find = (collection: string, { name }: ObjectRef) =>
    store.get({ collection, namespace: collection === "/nodes" ? "" : namespace, name });

  const account = find("/serviceaccounts", serviceaccount);
  if (!account) throw new InvalidTokenError(`serviceaccounts "${serviceaccount.name}" not found`);
  const { uid } = account.object.metadata;
  if (uid !== serviceaccount.uid) {
    const claimed = serviceaccount.uid;
    throw new InvalidTokenError(`service account UID (${uid}) does not match claim (${claimed})`);
  }
  if (isGone(account)) {
    const name = `${namespace}/${serviceaccount.name}`;
    throw new InvalidTokenError(`service account ${name} has been deleted`);
  }

  const holders: [string, string, ObjectRef | undefined][] = [
    ["secret", "/secrets", secret],
    ["pod", "/pods", pod],
    // Of a Pod's token the Node is information only.
    ["node", "/nodes", pod ? undefined : node],
  ];
  for (const [kind, collection, reference] of holders) {
    if (!reference) continue;
    const holder = find(collection, reference);
    if (!holder) throw new InvalidTokenError(invalidated);
    const found = holder.object.metadata.uid;
    if (found !== reference.uid) {
      throw new InvalidTokenError(
        `${kind} UID (${found}) does not match service account ${kind} ref claim (${reference.uid})`,
      );
    }
    if (isGone(holder)) throw new InvalidTokenError(invalidated);
  }
  return serviceAccountUser(namespace, serviceaccount, {
    "credential-id": `JTI=${claims.jti}`,
    ...(pod && { "pod-name": pod.name, "pod-uid": pod.uid }),
    ...(node && { "node-name": node.name, "node-uid": node.uid }),
  });
}
