import { serviceAccountOf } from "../authentication/service-account-user.ts";
import { type UserInfo } from "../request.ts";

/** Who shares one part of a budget: a user, or all ServiceAccounts of a namespace, of which a tenant can make as many as it likes. */
export function ownerOf({ name }: UserInfo): string {
  const account = serviceAccountOf(name);
  return account ? `system:serviceaccounts:${account.namespace}` : name;
}
