/** The queue holds as much as it may, or its disk does: what was not accepted is not in it. */
export class QueueFullError extends Error {
  override readonly name = "QueueFullError";
}

/** The queue cannot be reached, or cannot be read: whether something is in it is not known. */
export class QueueUnavailableError extends Error {
  override readonly name = "QueueUnavailableError";
}
