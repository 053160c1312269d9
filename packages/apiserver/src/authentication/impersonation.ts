import { type Authorizer, denial } from "../authorization/authorizer.ts";
import { type UserInfo } from "../request.ts";
import { badRequest } from "../errors.ts";
import { serviceAccountGroups, serviceAccountOf } from "./service-account-user.ts";

/** Who a request wants to be taken for; undefined parts were not named. */
export interface Impersonation {
  user: string;
  groups: string[];
  uid: string;
  extra: [key: string, value: string][];
}

/** Headers by their names in lower case, each with all of its values. */
export type HeaderList = Iterable<readonly [name: string, values: readonly string[]]>;

const extraPrefix = "impersonate-extra-";
/** Each is authorized on its own. */
const maxParts = 100;

/** What the headers `Impersonate-*` ask for; undefined when there are none. Throws a `StatusError` 400. */
export function impersonationOf(headers: HeaderList): Impersonation | undefined {
  const wish: Impersonation = { user: "", groups: [], uid: "", extra: [] };
  for (const [name, values] of headers) {
    if (name === "impersonate-user") wish.user = values[0] ?? "";
    else if (name === "impersonate-group") wish.groups.push(...values);
    else if (name === "impersonate-uid") wish.uid = values[0] ?? "";
    else if (name.startsWith(extraPrefix)) {
      const key = decoded(name.slice(extraPrefix.length));
      wish.extra.push(...values.map((value): [string, string] => [key, value]));
    }
  }
  const { user, groups, uid, extra } = wish;
  const parts = groups.length + extra.length;
  if (parts > maxParts) throw badRequest(`more than ${maxParts} groups and extras to impersonate`);
  if (user) return wish;
  if (parts === 0 && !uid) return undefined;
  throw badRequest("requested groups, extra or uid without impersonating a user");
}

/** The user to impersonate. Throws a `StatusError` 403 unless the requester may impersonate all of it. */
export function impersonated(
  authorizer: Authorizer,
  requester: UserInfo,
  wish: Impersonation,
): UserInfo {
  const { user, uid, extra } = wish;
  const account = serviceAccountOf(user);
  const check = (resource: string, name: string, group = "", subresource = "", namespace = "") => {
    const attributes = {
      user: requester,
      verb: "impersonate",
      group,
      resource,
      subresource,
      namespace,
      name,
    };
    const { allowed, reason } = authorizer.decide(attributes);
    if (!allowed) throw denial(attributes, reason);
  };
  if (account) check("serviceaccounts", account.name, "", "", account.namespace);
  else check("users", user);
  for (const group of wish.groups) check("groups", group);
  for (const [key, value] of extra) check("userextras", value, "authentication.k8s.io", key);
  if (uid) check("uids", uid, "authentication.k8s.io");

  const groups =
    wish.groups.length === 0 && account
      ? serviceAccountGroups(account.namespace)
      : [...wish.groups];
  const isNamed = groups.some((each) => /^system:(?:un)?authenticated$/.test(each));
  if (user === "system:anonymous") {
    if (!groups.includes("system:unauthenticated")) groups.push("system:unauthenticated");
  } else if (!isNamed) groups.push("system:authenticated");
  return {
    name: user,
    groups,
    ...(uid && { uid }),
    ...(extra.length > 0 && { extra: collected(extra) }),
  };
}

function collected(extra: Impersonation["extra"]): Record<string, string[]> {
  const all = new Map<string, string[]>();
  for (const [key, value] of extra) all.set(key, [...(all.get(key) ?? []), value]);
  return Object.fromEntries(all);
}

function decoded(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** The same headers of a request that never was on a wire: there, lists are joined. */
export function joinedHeaders(headers: Headers): [string, string[]][] {
  return [...headers]
    .filter(([name]) => name.startsWith("impersonate-"))
    .map(([name, value]) => [name, value.split(", ")]);
}
