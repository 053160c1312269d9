/**
 * Reads `.env` files. Where dotenv, python-dotenv and `util.parseEnv` agree, a value is theirs; where they differ, it is the whole
 * value, or a problem that shows how to write it. A value is never cut: it may be a credential.
 */

export interface DotEnvProblem {
  /** From 1. */
  line: number;
  /** Without the value, which may be a secret. */
  message: string;
}

export interface DotEnv {
  /** Variables that have no problem; of two with one name, the last one. */
  values: Record<string, string>;
  problems: DotEnvProblem[];
}

const assignment = /[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=/y;
const nothing = /^\s*(?:#.*)?$/;

export function parseDotEnv(given: string): DotEnv {
  const text = given.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const values = new Map<string, string>();
  const problems: DotEnvProblem[] = [];
  for (let at = 0, line = 1; at < text.length;) {
    const rest = text.slice(at, lineEnd(text, at));
    assignment.lastIndex = at;
    const [all = "", name = ""] = assignment.exec(text) ?? [];
    let end = at + rest.length;
    if (name !== "") {
      const found = valueAt(text, at + all.length, name);
      if ("message" in found) problems.push({ line, message: found.message });
      else values.set(name, found.value);
      end = found.end;
    } else if (!nothing.test(rest)) {
      problems.push({ line, message: "this line is not NAME=VALUE" });
    }
    line += text.slice(at, end + 1).split("\n").length - 1;
    at = end + 1;
  }
  return { values: Object.fromEntries(values), problems };
}

/** `end`: the end of the value's last line. */
type Found = { end: number } & ({ value: string } | { message: string });

function valueAt(text: string, start: number, name: string): Found {
  const end = lineEnd(text, start);
  const rest = text.slice(start, end);
  // A `#` in a word belongs to it, as in a password or a URL.
  const plain = rest.replace(/[ \t]#.*$/, "").replace(/^[ \t]+|[ \t]+$/g, "");
  const quote = /^["'`]/.exec(plain)?.[0];
  if (quote === undefined) return { value: plain, end };
  const from = text.indexOf(quote, start) + 1;
  const close = closing(text, from, quote);
  if (close < 0)
    return {
      message: `the closing ${quote} of ${name} is missing: ${quoted(name, rest)}`,
      end,
    };
  const last = lineEnd(text, close);
  const value = text.slice(from, close);
  if (!nothing.test(text.slice(close + 1, last)))
    return {
      message: `text follows the closing ${quote} of ${name}: ${quoted(name, text.slice(from, last))}`,
      end: last,
    };
  if (quote !== '"') return { value, end: last };
  const decoded = unescaped(value);
  if (decoded !== undefined) return { value: decoded, end: last };
  return {
    message: `readers of .env files differ on a backslash in ${name}: ${quoted(name, value)}`,
    end: last,
  };
}

function lineEnd(text: string, from: number): number {
  const end = text.indexOf("\n", from);
  return end < 0 ? text.length : end;
}

/** Only double quotes can be escaped. */
function closing(text: string, from: number, quote: string): number {
  if (quote !== '"') return text.indexOf(quote, from);
  for (let at = from; at < text.length; at++) {
    if (text[at] === "\\") at++;
    else if (text[at] === '"') return at;
  }
  return -1;
}

const escapes: Readonly<Record<string, string>> = {
  "\\": "\\",
  '"': '"',
  "'": "'",
  n: "\n",
  r: "\r",
  t: "\t",
  a: "\u0007",
  b: "\b",
  f: "\f",
  v: "\v",
};

/**
 * `\n` is a line end for all readers. The other escapes mean something to some of them only: a value with escaped quotes can only
 * be read with them, any other one is ambiguous.
 */
function unescaped(value: string): string | undefined {
  const used = [...value.matchAll(/\\([^])/g)].map(([, char = ""]) => char);
  const isEscaped = used.includes('"');
  if (!isEscaped && used.some((char) => char !== "n" && Object.hasOwn(escapes, char)))
    return undefined;
  return value.replace(/\\([^])/g, (all, char: string) => escapes[char] ?? all);
}

/** The quotes in which a value with such content is taken as it is. */
function quoted(name: string, content: string): string {
  const inner = content.replace(/^[ \t]*(["'`])(.*)\1[ \t]*$/s, "$2");
  const quote = ["'", "`"].find((each) => !inner.includes(each));
  return quote === undefined
    ? `write ${name}="…" with \\" for each quote in it`
    : `write ${name}=${quote}…${quote}, which takes every character as it is`;
}
