/**
 * How a function's own source calls its parameters: of one that is taken apart, or has a type of its own, the
 * whole pattern. Nothing for what has no source, as a bound function.
 */
export function parameterNames(callable: unknown): string[] {
  if (typeof callable !== "function") return [];
  const source = withoutComments(Function.prototype.toString.call(callable).slice(0, limit));
  const alone = /^(?:async\s+)?([\w$]+)\s*=>/.exec(source)?.[1];
  if (alone !== undefined) return [alone];
  return listed(source)
    .map((each) => each.replace(/^\s*\.\.\./, "").trim())
    .map((each) => (each.startsWith("{") ? each : (/^[\w$]+/.exec(each)?.[0] ?? "")));
}

/** Parameters stand at the beginning, whatever follows. */
const limit = 4096;

function withoutComments(source: string): string {
  return source.replaceAll(/\/\*[^]*?\*\/|\/\/.*/g, "");
}

/** What stands between the first parenthesis and its counterpart, parted by the commas that are in no other bracket. */
function listed(source: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = -1;
  for (let at = source.indexOf("("); at >= 0 && at < source.length; at++) {
    const sign = source[at] ?? "";
    if ("([{".includes(sign)) depth++;
    if (")]}".includes(sign)) depth--;
    const isEnd = depth === 0;
    if (from < 0) from = at + 1;
    else if (isEnd || (sign === "," && depth === 1)) {
      parts.push(source.slice(from, at));
      from = at + 1;
    }
    if (isEnd) break;
  }
  return parts.filter((each) => each.trim() !== "");
}
