/** Holds the text of an object, as an API server's store does. */
export interface TextHolder {
  /** Compact JSON, with `managedFields`. */
  readonly json: string;
}

const firstTidySize = 1024;
const holders = new Map<string, WeakRef<TextHolder>>();
let tidySize = firstTidySize;

/**
 * Where an API server is in the same process as its clients, the text of an object that a client keeps is a text that
 * the server holds anyway: the holder announces it here, and code that wants to keep an equal text keeps the holder
 * instead. That saves memory and reveals nothing: only code that has the object already can ask, and gets what is
 * equal to it.
 */
export function offerText(uid: string | undefined, holder: TextHolder): void {
  if (uid === undefined) return;
  holders.set(uid, new WeakRef(holder));
  if (holders.size <= tidySize) return;
  for (const [each, held] of holders) if (!held.deref()) holders.delete(each);
  tidySize = Math.max(firstTidySize, holders.size * 2);
}

/** The latest one that has been offered for this uid. */
export function offeredText(uid: string | undefined): TextHolder | undefined {
  return holders.get(uid ?? "")?.deref();
}
