/** Something that only the Function's author can put right: trying again changes nothing. */
export class UserError extends Error {
  override readonly name = "UserError";
}

/** The message of an error with those of its causes: `a: b: c`. */
export function messageOf(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, depth = 0; at != null && depth < 8; depth++) {
    const text = at instanceof Error ? at.message || at.name : String(at);
    if (text && !parts.some((part) => part.includes(text))) parts.push(text);
    at = at instanceof AggregateError ? at.errors[0] : at instanceof Error ? at.cause : undefined;
  }
  return parts.join(": ");
}
