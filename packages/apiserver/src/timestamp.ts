/** `metav1.Time` of milliseconds since the epoch: RFC 3339, whole seconds, UTC. */
export function timestampOf(milliseconds: number): string {
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");
}
