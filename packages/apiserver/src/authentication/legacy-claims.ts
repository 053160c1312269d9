import { timingSafeEqual } from "node:crypto";
import { type UserInfo } from "../request.ts";
import { type Store } from "../store/store.ts";
import { serviceAccountUser } from "./service-account-user.ts";
import { InvalidTokenError } from "./invalid-token-error.ts";

export const tokenSecretType = "kubernetes.io/service-account-token";
export const accountNameAnnotation = "kubernetes.io/service-account.name";
export const legacyIssuer = "kubernetes/serviceaccount";

/** The claims of a token in a Secret (`pkg/serviceaccount/legacy.go`). */
export interface LegacyClaims {
  iss: string;
  sub: string;
  "kubernetes.io/serviceaccount/namespace": string;
  "kubernetes.io/serviceaccount/secret.name": string;
  "kubernetes.io/serviceaccount/service-account.name": string;
  "kubernetes.io/serviceaccount/service-account.uid": string;
}

export function isLegacy(claims: object): claims is LegacyClaims {
  return (claims as LegacyClaims).iss === legacyIssuer;
}

/** Good as long as the Secret holds this token and the ServiceAccount is the same. */
export function legacyUser(store: Store, claims: LegacyClaims, token: string): UserInfo {
  const namespace = claims["kubernetes.io/serviceaccount/namespace"];
  const secretName = claims["kubernetes.io/serviceaccount/secret.name"];
  const name = claims["kubernetes.io/serviceaccount/service-account.name"];
  const uid = claims["kubernetes.io/serviceaccount/service-account.uid"];
  const secret = store.get({ collection: "/secrets", namespace, name: secretName })?.object;
  if (!secret || secret.metadata.deletionTimestamp) {
    throw new InvalidTokenError("Token has been invalidated");
  }
  const held = (secret.data as Record<string, string> | undefined)?.token ?? "";
  if (!isSame(Buffer.from(held, "base64"), Buffer.from(token))) {
    throw new InvalidTokenError("Token does not match server's copy");
  }
  const account = store.get({ collection: "/serviceaccounts", namespace, name })?.object;
  if (!account) throw new InvalidTokenError(`serviceaccounts "${name}" not found`);
  if (account.metadata.deletionTimestamp) {
    throw new InvalidTokenError(`ServiceAccount ${namespace}/${name} has been deleted`);
  }
  if (account.metadata.uid !== uid) {
    const present = account.metadata.uid;
    throw new InvalidTokenError(`ServiceAccount UID (${present}) does not match claim (${uid})`);
  }
  return serviceAccountUser(namespace, { name, uid });
}

function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}
