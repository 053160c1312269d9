import { type UserInfo } from "../request.ts";

const prefix = "system:serviceaccount:";

export function serviceAccountUsername(namespace: string, name: string): string {
  return `${prefix}${namespace}:${name}`;
}

/** The namespace and name of a ServiceAccount's username; undefined for other users. */
export function serviceAccountOf(
  username: string,
): { namespace: string; name: string } | undefined {
  if (!username.startsWith(prefix)) return undefined;
  const [namespace, name, ...rest] = username.slice(prefix.length).split(":");
  return namespace && name && rest.length === 0 ? { namespace, name } : undefined;
}

export function serviceAccountGroups(namespace: string): string[] {
  return ["system:serviceaccounts", `system:serviceaccounts:${namespace}`];
}

/** The user that a ServiceAccount is; details are given as `authentication.kubernetes.io/<key>`. */
export function serviceAccountUser(
  namespace: string,
  { name, uid }: { name: string; uid: string },
  details: Record<string, string> = {},
): UserInfo {
  const extra = Object.entries(details)
    .filter(([, value]) => value !== "")
    .map(([key, value]) => [`authentication.kubernetes.io/${key}`, [value]]);
  return {
    name: serviceAccountUsername(namespace, name),
    uid,
    groups: [...serviceAccountGroups(namespace), "system:authenticated"],
    ...(extra.length > 0 && { extra: Object.fromEntries(extra) as Record<string, string[]> }),
  };
}
