/** Something a person can put right: shown as a sentence and a way out, without a stack. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly wayOut: string;

  constructor(message: string, wayOut: string, options?: ErrorOptions) {
    super(message, options);
    this.wayOut = wayOut;
  }
}
