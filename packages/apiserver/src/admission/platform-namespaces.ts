export const platformNamespaces: readonly string[] = ["kube-system", "kyma-system"];

/**
 * Whether a namespace belongs to the platform itself: Pod Security exempts it, and its Pods may have the priorities of
 * the system. The platform creates both at each start, so that no tenant can make them first.
 */
export function isPlatformNamespace(name: string): boolean {
  return platformNamespaces.includes(name);
}
