import { type ASTNode, type Environment, type ParseResult } from "@marcbachmann/cel-js";

/** Under this name the environment has `matches` with Go's patterns; the library's own cannot be replaced, only passed by. */
export const matchesOfGo = "matchesPattern";

/**
 * Parses an expression and mends what the library has otherwise than CEL: `matches` reads patterns as JavaScript does, and `has`
 * takes only fields of named variables, not `has(self[0].field)`. Throws the library's error; its tree is that of the original.
 */
export function parseExpression(environment: Environment, expression: string): ParseResult {
  const original = environment.parse(expression);
  let text = expression;
  let parsed = original;
  for (;;) {
    const mended = withoutPeculiarHas(text, parsed.ast);
    if (mended === text) break;
    text = mended;
    parsed = environment.parse(text);
  }
  useGoPatterns(parsed.ast);
  if (parsed === original) return original;
  return Object.assign((context?: object) => parsed(context), { ...parsed, ast: original.ast });
}

/** `has(X.f)` as `X.?f.hasValue()`, which means the same, where X does not begin with a variable; nested ones take turns. */
function withoutPeculiarHas(text: string, ast: ASTNode): string {
  let result = text;
  // From the end, so that the places of those before stay right.
  for (const node of outermost(ast, isPeculiarHas).toSorted((a, b) => b.start - a.start)) {
    const [, [field]] = node.args as [string, [ASTNode & { op: "." }]];
    const [owner, name] = field.args;
    const mended = `(${text.slice(owner.start, owner.end)}).?${name}.hasValue()`;
    result = result.slice(0, node.start) + mended + result.slice(node.end);
  }
  return result;
}

function isPeculiarHas({ op, args }: ASTNode): boolean {
  if (op !== "call" || args[0] !== "has" || args[1].length !== 1) return false;
  let node = args[1][0];
  if (node?.op !== ".") return false;
  while (node?.op === "." || node?.op === ".?") node = node.args[0];
  return node?.op !== "id";
}

function outermost(value: unknown, wanted: (node: ASTNode) => boolean): ASTNode[] {
  if (Array.isArray(value)) return value.flatMap((each) => outermost(each, wanted));
  if (typeof value !== "object" || value === null || !("op" in value)) return [];
  const node = value as ASTNode;
  return wanted(node) ? [node] : outermost(node.args, wanted);
}

function useGoPatterns(node: unknown): void {
  if (Array.isArray(node)) for (const each of node) useGoPatterns(each);
  if (typeof node !== "object" || node === null || !("op" in node)) return;
  const { op, args } = node as ASTNode;
  if (op === "rcall" && args[0] === "matches" && args[2].length === 1) args[0] = matchesOfGo;
  useGoPatterns(args);
}
