/** A request that cannot be handed to the Function; its message is the answer's body. */
export class RequestError extends Error {
  override readonly name = "RequestError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
