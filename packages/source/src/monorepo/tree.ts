/** The files of a repository, wherever they are. Paths are relative to its root, with `/` between parts. */
export interface Tree {
  /** Those of these files that are there. */
  present(files: readonly string[]): Promise<string[]>;
  /** All files. Throws a `GitError` when they are too many. */
  list(): Promise<ReadonlySet<string>>;
  /**
   * Brings files, and whole folders (with a slash at the end), to `destination`. Later calls name what earlier ones
   * have brought, and more. Writes through no link, and nothing outside.
   */
  checkOut(names: readonly string[], destination: string): Promise<void>;
}
