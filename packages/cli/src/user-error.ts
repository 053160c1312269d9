/** A mistake that the user can correct: shown as a sentence and a hint, without a stack. */
export class UserError extends Error {
  override readonly name = "UserError";
  /** What to do about it. */
  readonly wayOut: string | undefined;

  constructor(message: string, wayOut?: string, options?: ErrorOptions) {
    super(message, options);
    this.wayOut = wayOut;
  }
}
