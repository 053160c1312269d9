const statement =
  /^([ \t]*)import\s+(?:([\w$]+)\s*,?\s*)?(?:\{([^}]*)\}\s*)?from\s*("[^"\n]*"|'[^'\n]*')[ \t]*;?/gm;

/**
 * TypeScript whose types have become blanks, without the imports that only they used: as the compiler leaves
 * them out, while Node.js takes what does not say `import type` for code. Lines and columns stay.
 */
export function withoutTypeImports(source: string): string {
  const rest = source.replaceAll(statement, "");
  return source.replaceAll(statement, (text, _indent, name?: string, list?: string) => {
    const names = [name, ...(list ?? "").split(",").map(localName)].filter((each) => each);
    const isUsed = names.length === 0 || names.some((each) => each && uses(rest, each));
    return isUsed ? text : text.replaceAll(/\S/g, " ");
  });
}

/** `Name`, or `Name as Local`. */
function localName(specifier: string): string | undefined {
  return specifier
    .trim()
    .split(/\s+as\s+/)
    .at(-1);
}

function uses(source: string, name: string): boolean {
  const escaped = name.replaceAll("$", String.raw`\$`);
  return new RegExp(String.raw`(?<![\w$])${escaped}(?![\w$])`).test(source);
}
