/** Thrown for a Function that cannot be loaded; its message is for the Function's author. */
export class LoadError extends Error {
  override readonly name = "LoadError";
}
