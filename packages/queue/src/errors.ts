/** The queue holds as much as it may, or its disk does: what was not accepted is not in it. */
export class QueueFullError extends Error {
  override readonly name = "QueueFullError";
}

/** A record has another value by now than the one that was to be replaced, or none: nothing was written. */
export class RecordChangedError extends Error {
  override readonly name = "RecordChangedError";
}

export const recordChanged = (name: string): RecordChangedError =>
  new RecordChangedError(`the record ${name} has been changed or removed meanwhile`);

/** The queue cannot be reached, or cannot be read: whether something is in it is not known. */
export class QueueUnavailableError extends Error {
  override readonly name = "QueueUnavailableError";
}
