const current = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)$/;
const suffix = /\.svc(\.cluster(\.local)?)?$/;

/**
 * A v1beta1 reference to a Gateway as `namespace/name`: from that form, `name`, `name.namespace` or
 * `name.namespace.svc[.cluster[.local]]` (`internal/gatewaytranslator` of the original). Undefined if it is neither.
 */
export function gatewayName(reference: string, namespace: string): string | undefined {
  if (current.test(reference)) return reference;
  const parts = reference.replace(suffix, "").split(".");
  if (parts.length > 2) return undefined;
  const [name = "", inNamespace = namespace] = parts;
  const translated = `${inNamespace}/${name}`;
  return current.test(translated) ? translated : undefined;
}
