import { parse } from "es-module-lexer/minimal";

const keyword = "import";
const staticImport = 1;
const identifier = /[\p{ID_Continue}$\u200c\u200d]+/gu;
const comment = /\/\*[^]*?\*\/|\/\/.*/g;
/** `name`, or `name as local`: of `name, { name as local }`. */
const binding = /[^{},\s][^{},]*/g;

interface Statement {
  start: number;
  end: number;
  /** What is between `import` and `from`. */
  bindings: string;
}

/**
 * JavaScript that was TypeScript, without the imports that only types used: as the compiler leaves them out. They become blanks, so
 * that lines and columns stay. A name that is still in the code, if only in a comment, counts as used.
 */
export function withoutUnusedImports(code: string): string {
  const statements = importsOf(code);
  const between = statements.map(({ start }, index) =>
    code.slice(statements[index - 1]?.end ?? 0, start),
  );
  const rest = code.slice(statements.at(-1)?.end ?? 0);
  const used = new Set([...between, rest].flatMap((each) => each.match(identifier) ?? []));
  const kept = statements.map((each) =>
    withUsedNames(code.slice(each.start, each.end), each, used),
  );
  return between.map((each, index) => each + kept[index]).join("") + rest;
}

/** The import statements that may have names of types. None of a text that the lexer does not understand. */
function importsOf(code: string): Statement[] {
  let found;
  try {
    [found] = parse(code);
  } catch {
    return [];
  }
  return found
    .filter(({ t, ss }) => t === staticImport && code.startsWith(keyword, ss))
    .map(({ ss, se, s }) => {
      const head = code.slice(ss + keyword.length, s).replaceAll(comment, blank);
      return { start: ss, end: se, bindings: head.slice(0, Math.max(0, head.lastIndexOf("from"))) };
    })
    .filter(({ bindings }) => /\S/.test(bindings) && !/[*"']/.test(bindings));
}

function withUsedNames(text: string, { bindings }: Statement, used: ReadonlySet<string>): string {
  const isUsed = (each: string) => used.has(each.trim().split(/\s+/).at(-1) ?? "");
  const all = bindings.match(binding) ?? [];
  if (all.length > 0 && !all.some(isUsed)) return blank(text);
  const kept = bindings.replaceAll(/([^{},\s][^{},]*),?/g, (each, name: string) =>
    isUsed(name) ? each : blank(each),
  );
  return keyword + kept + text.slice(keyword.length + bindings.length);
}

const blank = (text: string): string => text.replaceAll(/\S/g, " ");
