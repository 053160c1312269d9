/**
 * Git's pattern matching (wildmatch), of which gitignore(5) is a description: bytes, not characters, and its own corner cases.
 * Strings here have one character for each byte.
 */

type Verdict = "match" | "differs" | "never" | "neverHere";

const classes: Record<string, RegExp> = {
  alnum: /[0-9A-Za-z]/,
  alpha: /[A-Za-z]/,
  blank: /[ \t]/,
  // oxlint-disable-next-line no-control-regex -- the class is these characters
  cntrl: /[\x00-\x1f\x7f]/,
  digit: /\d/,
  graph: /[!-~]/,
  lower: /[a-z]/,
  print: /[ -~]/,
  punct: /[!-/:-@[-`{-~]/,
  space: /[ \t-\r]/,
  upper: /[A-Z]/,
  xdigit: /[0-9A-Fa-f]/,
};

/** `inPath`: `*` and `?` do not match a slash, and `**` does. */
export const wildmatch = (pattern: string, text: string, inPath: boolean): boolean =>
  matchFrom({ pattern, text, inPath }, 0, 0) === "match";

interface Match {
  pattern: string;
  text: string;
  inPath: boolean;
}

function matchFrom(match: Match, from: number, at: number): Verdict {
  const { pattern, text, inPath } = match;
  let [p, t] = [from, at];
  for (; p < pattern.length; p++, t++) {
    let wanted = pattern.charAt(p);
    const found = text.charAt(t);
    if (found === "" && wanted !== "*") return "never";
    if (wanted === "?") {
      if (inPath && found === "/") return "differs";
    } else if (wanted === "[") {
      const set = matchSet(pattern, p, found);
      if (set === undefined) return "never";
      if (!set.isIn || (inPath && found === "/")) return "differs";
      p = set.end;
    } else if (wanted === "*") {
      const star = afterStars(match, p, from);
      if (star.skips && matchFrom(match, star.next + 1, t) === "match") return "match";
      p = star.next;
      const slash = text.indexOf("/", t);
      if (p === pattern.length) return !star.crosses && slash >= 0 ? "neverHere" : "match";
      if (star.crosses || pattern.charAt(p) !== "/") return matchRest(match, p, t, star.crosses);
      // One star and a slash: the rest of this folder's name.
      if (slash < 0) return "never";
      t = slash;
    } else {
      if (wanted === "\\") wanted = pattern.charAt(++p);
      if (found !== wanted) return "differs";
    }
  }
  return t < text.length ? "differs" : "match";
}

/** What follows stars: whether they match slashes, and whether they are a `**` with a slash, which also matches nothing. */
function afterStars({ pattern, inPath }: Match, at: number, from: number) {
  let next = at + 1;
  while (pattern.charAt(next) === "*") next++;
  if (next === at + 1) return { next, crosses: !inPath, skips: false };
  if (!inPath) return { next, crosses: true, skips: false };
  const follows = pattern.charAt(next);
  const isAlone =
    (at === from || pattern.charAt(at - 1) === "/") &&
    (follows === "" || follows === "/" || pattern.startsWith("\\/", next));
  return { next, crosses: isAlone, skips: isAlone && follows === "/" };
}

/** The pattern from `p` at some place of the text from `t` on. */
function matchRest(match: Match, p: number, t: number, crosses: boolean): Verdict {
  for (let at = t; at < match.text.length; at++) {
    const verdict = matchFrom(match, p, at);
    if (verdict !== "differs") {
      if (!crosses || verdict !== "neverHere") return verdict;
    } else if (!crosses && match.text.charAt(at) === "/") return "neverHere";
  }
  return "never";
}

/** A set in brackets that begins at `from`; undefined for one that does not end. `end`: its last bracket. */
function matchSet(
  pattern: string,
  from: number,
  found: string,
): { isIn: boolean; end: number } | undefined {
  let p = from + 1;
  const isNegated = pattern.charAt(p) === "!" || pattern.charAt(p) === "^";
  if (isNegated) p++;
  let isIn = false;
  let before = "";
  for (let isFirst = true; isFirst || pattern.charAt(p) !== "]"; p++, isFirst = false) {
    let one = pattern.charAt(p);
    if (one === "") return undefined;
    const following = pattern.charAt(p + 1);
    if (one === "-" && before !== "" && following !== "" && following !== "]") {
      one = pattern.charAt(++p);
      if (one === "\\") one = pattern.charAt(++p);
      if (one === "") return undefined;
      if (found >= before && found <= one) isIn = true;
      one = "";
    } else if (one === "[" && following === ":") {
      const end = pattern.indexOf("]", p + 2);
      if (end < 0) return undefined;
      if (end > p + 2 && pattern.charAt(end - 1) === ":") {
        const name = pattern.slice(p + 2, end - 1);
        if (!Object.hasOwn(classes, name)) return undefined;
        if (classes[name]?.test(found)) isIn = true;
        p = end;
        one = "";
      } else if (found === "[") isIn = true;
    } else {
      if (one === "\\") one = pattern.charAt(++p);
      if (one === "") return undefined;
      if (found === one) isIn = true;
    }
    before = one;
  }
  return { isIn: isIn !== isNegated, end: p };
}
