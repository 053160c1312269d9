/**
 * Go's regular expressions (https://github.com/google/re2/wiki/Syntax) in those of JavaScript: patterns of schemas and of CEL
 * are written for Go. Differences in kinds of white space and in what counts as a word are left as they are.
 */

const posixClasses: Record<string, string> = {
  alnum: "0-9A-Za-z",
  alpha: "A-Za-z",
  ascii: "\\x00-\\x7F",
  blank: "\\t ",
  cntrl: "\\x00-\\x1F\\x7F",
  digit: "0-9",
  graph: "!-~",
  lower: "a-z",
  print: " -~",
  punct: "!-\\/:-@\\[-`{-~",
  space: "\\t\\n\\v\\f\\r ",
  upper: "A-Z",
  word: "0-9A-Za-z_",
  xdigit: "0-9A-Fa-f",
};

const known = new Map<string, RegExp | SyntaxError>();
const maxKnown = 10_000;

/** The pattern, compiled once. Throws a `SyntaxError` for what Go does not take either, look-around and references back among it. */
export function goRegExp(pattern: string): RegExp {
  let found = known.get(pattern);
  if (!found) {
    if (known.size >= maxKnown) known.clear();
    found = compiled(pattern);
    known.set(pattern, found);
  }
  if (found instanceof SyntaxError) throw found;
  return found;
}

function compiled(pattern: string): RegExp | SyntaxError {
  try {
    const source = translated(pattern);
    try {
      return new RegExp(source, "u");
    } catch {
      // Escapes that need none are errors only in that mode.
      return new RegExp(source);
    }
  } catch (error) {
    if (error instanceof SyntaxError) return error;
    throw error;
  }
}

/** Flags hold from where they stand to the end of their group there; here a group of their own holds them, anew in each alternative. */
function translated(pattern: string): string {
  let result = "";
  /** For each group that is open, the flags set within it. */
  const groups: string[] = [""];
  let at = 0;
  const flagsEnd = () => (groups.at(-1) ? ")" : "");
  while (at < pattern.length) {
    const rest = pattern.slice(at);
    const [token = ""] = tokens.exec(rest) ?? [rest.charAt(0)];
    at += token.length;
    if (/^\(\?[a-zA-Z-]*\)$/.test(token)) {
      result += flagsEnd();
      groups[groups.length - 1] = flagged(token.slice(2, -1), groups.at(-1) ?? "");
      result += groups.at(-1) ?? "";
    } else if (token === "(" || token.startsWith("(?")) {
      groups.push("");
      result += opened(token);
    } else if (token === ")") {
      result += `${flagsEnd()})`;
      if (groups.length === 1) throw new SyntaxError("unexpected )");
      groups.pop();
    } else if (token === "|") {
      result += `${flagsEnd()}|${groups.at(-1) ?? ""}`;
    } else result += token.startsWith("[") ? characterClass(token) : atom(token);
  }
  return result + flagsEnd();
}

/** What is read at once: a quotation, an escape, a class, flags, the start of a group. */
const tokens =
  /^(?:\\Q[^]*?(?:\\E|$)|\\[pP]\{[^}]*\}|\\[^]|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\[^]|[^\]\\])*\]|\(\?P?<[A-Za-z_]\w*>|\(\?[a-zA-Z-]*[:)]|\(\?[^]?)/;

function flagged(flags: string, before: string): string {
  const [on = "", off = ""] = flags.split("-");
  const [onBefore = "", offBefore = ""] = before.slice(2, -1).split("-");
  checkFlags(on + off);
  const all = [...new Set(Array.from(onBefore + on))].filter((each) => !off.includes(each));
  const none = [...new Set(Array.from(offBefore + off))].filter((each) => !on.includes(each));
  if (all.length + none.length === 0) return "";
  return `(?${all.join("")}${none.length > 0 ? `-${none.join("")}` : ""}:`;
}

function checkFlags(flags: string): void {
  // Ungreedy has no like here.
  if (/[^ims]/.test(flags)) throw new SyntaxError(`invalid or unsupported flags: ${flags}`);
}

function opened(token: string): string {
  if (token === "(" || token === "(?:") return token;
  const name = /^\(\?P?<(\w+)>$/.exec(token)?.[1];
  if (name !== undefined) return `(?<${name}>`;
  const flags = /^\(\?([a-zA-Z-]+):$/.exec(token)?.[1];
  if (flags === undefined) throw new SyntaxError(`invalid or unsupported Perl syntax: ${token}`);
  checkFlags(flags.replace("-", ""));
  return token;
}

function atom(token: string): string {
  if (token.startsWith("\\Q"))
    return token
      .slice(2)
      .replace(/\\E$/, "")
      .replaceAll(/[$()*+./?[\\\]^{|}]/g, "\\$&");
  if (token === "\\A") return "(?-m:^)";
  if (token === "\\z") return "(?-m:$)";
  if (token === "\\a") return "\\x07";
  if (/^\\[1-9kZG]/.test(token)) throw new SyntaxError(`invalid escape sequence: ${token}`);
  return token;
}

/** A bracket that opens a class stands for itself within it. */
function characterClass(token: string): string {
  if (token.length === 1) throw new SyntaxError("missing closing ]");
  const negated = token.startsWith("[^");
  const inner = token.slice(negated ? 2 : 1, -1);
  const text = inner.replaceAll(
    /\[:(\^?)([a-z]+):\]|\\[^]|^\]|\[/g,
    (part, not: string | undefined, name: string | undefined) => {
      if (name === undefined) return part === "[" || part === "]" ? `\\${part}` : part;
      const range = posixClasses[name];
      // The opposite of a class cannot be written within another.
      if (range === undefined || not)
        throw new SyntaxError(`invalid or unsupported character class range: ${part}`);
      return range;
    },
  );
  return `[${negated ? "^" : ""}${text}]`;
}
