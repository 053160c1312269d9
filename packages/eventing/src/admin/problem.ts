/** A request of an administrator that fails, for the response. */
export class Problem extends Error {
  override readonly name = "Problem";
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}
