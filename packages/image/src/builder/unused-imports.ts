const statement =
  /^([ \t]*import\s+)(?:([\w$]+)(\s*,)?\s*)?(?:\{([^}]*)\}\s*)?from\s*("[^"\n]*"|'[^'\n]*')[ \t]*;?/gm;

/**
 * JavaScript that was TypeScript, without the imports that only types used: as the compiler leaves them out. They become blanks, so
 * that lines and columns stay. A name that is still in the code, if only in a comment, counts as used.
 */
export function withoutUnusedImports(code: string): string {
  const rest = code.replaceAll(statement, "");
  return code.replaceAll(statement, (text, _start, name?: string, _comma?: string, list = "") => {
    const specifiers = (list as string).split(",").filter((each) => each.trim() !== "");
    const unused = specifiers.filter((each) => !uses(rest, localName(each)));
    const isNameUsed = name !== undefined && uses(rest, name);
    const isEmpty = name === undefined && specifiers.length === 0;
    if (isEmpty || (isNameUsed && unused.length === 0)) return text;
    if (!isNameUsed && unused.length === specifiers.length) return blank(text);
    const kept = isNameUsed ? text : text.replace(/(?<=^[ \t]*import\s+)[\w$]+\s*,/, blank);
    return kept.replace(/\{[^}]*\}/, (braces) => withoutSpecifiers(braces, unused));
  });
}

/** `{ A, b }` without `A`. */
function withoutSpecifiers(braces: string, unused: readonly string[]): string {
  return braces.replaceAll(/[^{},]+,?/g, (text) =>
    unused.includes(text.replace(",", "")) ? blank(text) : text,
  );
}

/** `Name`, or `Name as Local`. */
function localName(specifier: string): string {
  return (
    specifier
      .trim()
      .split(/\s+as\s+/)
      .at(-1) ?? ""
  );
}

const blank = (text: string): string => text.replaceAll(/\S/g, " ");

function uses(code: string, name: string): boolean {
  const escaped = name.replaceAll("$", String.raw`\$`);
  return new RegExp(String.raw`(?<![\w$])${escaped}(?![\w$])`).test(code);
}
