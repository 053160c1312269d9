/** Whether it is one: of what a handler throws, asking may throw too. */
export function isRequestError(error: unknown): error is RequestError {
  try {
    return error instanceof RequestError;
  } catch {
    return false;
  }
}

/** A request that cannot be handed to the Function; its message is the answer's body. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
