const reserved = new Set(
  "true false null in as break const continue else for function if import let loop package namespace return var void while".split(
    " ",
  ),
);

/** How a field's name is written in a CEL rule: `__dash__` and so on (`k8s.io/apiserver/pkg/cel/escaping.go`). */
export function identifierOf(name: string): string {
  if (reserved.has(name)) return `__${name}__`;
  return name
    .replaceAll("__", "__underscores__")
    .replaceAll(".", "__dot__")
    .replaceAll("-", "__dash__")
    .replaceAll("/", "__slash__");
}
