/**
 * The store's file holds something that was never written to it, or lacks something that was. It is left as it is:
 * what to do about it is the operator's decision.
 */
export class DamagedStoreError extends Error {
  override readonly name = "DamagedStoreError";
  readonly file: string;

  constructor(file: string, damage: string, options?: ErrorOptions) {
    super(`the store ${file} is damaged: ${damage}; it has been left as it is`, options);
    this.file = file;
  }
}
