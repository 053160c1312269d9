/**
 * Reads JSON for what `JSON.parse` does not report: keys that an object has twice, and syntax errors in the words of
 * Go's `encoding/json`, which clients and people know.
 */
export interface JsonScan {
  /** Paths like `spec.containers[0].name`, each once. */
  duplicates: string[];
  /** Set when the text is not JSON. */
  problem: string | undefined;
}

const maxDepth = 1000;
const maxDuplicates = 100;
const space = /[ \t\r\n]*/y;
const plainString = /"[^"\\\u0000-\u001f]*"/y; // oxlint-disable-line no-control-regex
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;

class SyntaxProblem extends Error {}

export function scanJson(text: string): JsonScan {
  const scanner = new Scanner(text);
  try {
    scanner.document();
    return { duplicates: scanner.duplicates, problem: undefined };
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    return { duplicates: [], problem: error.message };
  }
}

class Scanner {
  readonly duplicates: string[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#value("", 0);
    this.#skip();
    if (this.#at < this.#text.length) this.#fail("after top-level value");
  }

  #value(path: string, depth: number): void {
    if (depth > maxDepth) throw new SyntaxProblem("exceeded max depth");
    this.#skip();
    const first = this.#text[this.#at];
    if (first === "{") this.#object(path, depth);
    else if (first === "[") this.#list(path, depth);
    else if (first === '"') this.#string();
    else if (first === "t") this.#word("true");
    else if (first === "f") this.#word("false");
    else if (first === "n") this.#word("null");
    else if (first !== undefined && /[-\d]/.test(first)) this.#number();
    else this.#fail("looking for beginning of value");
  }

  #object(path: string, depth: number): void {
    const seen = new Set<string>();
    this.#at++;
    this.#skip();
    if (this.#take("}")) return;
    for (;;) {
      this.#skip();
      if (this.#text[this.#at] !== '"') this.#fail("looking for beginning of object key string");
      const key = this.#string();
      const below = path ? `${path}.${key}` : key;
      if (seen.has(key)) this.#note(below);
      seen.add(key);
      this.#skip();
      if (!this.#take(":")) this.#fail("after object key");
      this.#value(below, depth + 1);
      this.#skip();
      if (this.#take("}")) return;
      if (!this.#take(",")) this.#fail("after object key:value pair");
    }
  }

  #list(path: string, depth: number): void {
    this.#at++;
    this.#skip();
    if (this.#take("]")) return;
    for (let index = 0; ; index++) {
      this.#value(`${path}[${index}]`, depth + 1);
      this.#skip();
      if (this.#take("]")) return;
      if (!this.#take(",")) this.#fail("after array element");
    }
  }

  #string(): string {
    const start = this.#at;
    plainString.lastIndex = start;
    if (plainString.test(this.#text)) {
      this.#at = plainString.lastIndex;
      return this.#text.slice(start + 1, this.#at - 1);
    }
    for (this.#at++; this.#text[this.#at] !== '"'; this.#at++) {
      if ((this.#text[this.#at] ?? "\0") < " ") this.#fail("in string literal");
      if (this.#text[this.#at] === "\\") this.#escape();
    }
    this.#at++;
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #escape(): void {
    this.#at++;
    if (!/["\\/bfnrtu]/.test(this.#text[this.#at] ?? "")) this.#fail("in string escape code");
    if (this.#text[this.#at] !== "u") return;
    for (let digit = 0; digit < 4; digit++) {
      this.#at++;
      if (!/[\da-fA-F]/.test(this.#text[this.#at] ?? "")) {
        this.#fail("in \\u hexadecimal character escape");
      }
    }
  }

  #number(): void {
    number.lastIndex = this.#at;
    if (number.test(this.#text)) this.#at = number.lastIndex;
    else {
      this.#at++;
      this.#fail("in numeric literal");
    }
    const next = this.#text[this.#at] ?? "";
    if (next === "." || next === "e" || next === "E") {
      this.#at++;
      this.#fail(
        next === "." ? "after decimal point in numeric literal" : "in exponent of numeric literal",
      );
    }
  }

  #word(word: string): void {
    for (let index = 0; index < word.length; index++) {
      const letter = word[index];
      if (this.#text[this.#at] !== letter) {
        this.#fail(
          index === 0
            ? "looking for beginning of value"
            : `in literal ${word} (expecting '${letter}')`,
        );
      }
      this.#at++;
    }
  }

  #note(path: string): void {
    if (this.duplicates.length < maxDuplicates && !this.duplicates.includes(path)) {
      this.duplicates.push(path);
    }
  }

  #skip(): void {
    space.lastIndex = this.#at;
    space.test(this.#text);
    this.#at = space.lastIndex;
  }

  #take(letter: string): boolean {
    if (this.#text[this.#at] !== letter) return false;
    this.#at++;
    return true;
  }

  #fail(where: string): never {
    const letter = this.#text[this.#at];
    if (letter === undefined) throw new SyntaxProblem("unexpected end of JSON input");
    throw new SyntaxProblem(`invalid character ${quoted(letter)} ${where}`);
  }
}

function quoted(letter: string): string {
  if (letter === "'") return String.raw`'\''`;
  if (letter === '"') return `'"'`;
  const code = letter.charCodeAt(0);
  if (code < 0x20 || (code > 0x7e && code < 0xa1)) {
    const known: Record<string, string> = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };
    return `'${known[letter] ?? (code < 0x80 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`)}'`;
  }
  return `'${letter}'`;
}
