const member = '"managedFields":[';
const [quote, backslash, open, close, comma, brace] = new TextEncoder().encode('"\\[],{');

/**
 * A compact JSON text without its lists of that name. To parse them and to collect them as garbage is nearly half of the
 * work with a list of Kubernetes objects; to leave them out beforehand takes a fraction of that. Text that ends too early
 * is left to the parser.
 */
export function withoutManagedFields(text: string): string {
  const kept: string[] = [];
  let from = 0;
  for (let at = text.indexOf(member); at >= 0; at = text.indexOf(member, at + 1)) {
    // Anything else before it is a backslash: its quote is part of another key.
    const before = text.charCodeAt(at - 1);
    if (before !== comma && before !== brace) continue;
    const end = endOfList(text, at + member.length);
    if (end === undefined) break;
    // One of the two commas next to it is removed, too.
    const isFollowed = text.charCodeAt(end) === comma;
    kept.push(text.slice(from, !isFollowed && before === comma ? at - 1 : at));
    from = isFollowed ? end + 1 : end;
    at = from - 1;
  }
  if (from === 0) return text;
  kept.push(text.slice(from));
  return kept.join("");
}

/** Behind the bracket that closes the list whose elements begin here. */
function endOfList(text: string, from: number): number | undefined {
  let depth = 1;
  let isString = false;
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (isString && code === backslash) i++;
    else if (code === quote) isString = !isString;
    else if (isString) continue;
    else if (code === open) depth++;
    else if (code === close && --depth === 0) return i + 1;
  }
  return undefined;
}
