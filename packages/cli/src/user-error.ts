/** Something a person can put right: shown as a sentence and a way out, without a stack. */
export class UserError extends Error {
  override readonly name = "UserError";
  /** What to do about it. */
  readonly wayOut: string | undefined;

  constructor(message: string, wayOut?: string, options?: ErrorOptions) {
    super(message, options);
    this.wayOut = wayOut;
  }
}
