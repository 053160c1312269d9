const listLimit = 5;

/** For a message: the first few, and how many more there are. */
export function listed(all: readonly string[]): string {
  const more = all.length - listLimit;
  return all.slice(0, listLimit).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
