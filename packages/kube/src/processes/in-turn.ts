/** `Promise.all` for lists of any length: at most so many at a time, since each may hold a descriptor. */
export async function mapInTurn<T, R>(
  items: Iterable<T>,
  atOnce: number,
  action: (item: T) => Promise<R>,
): Promise<R[]> {
  const all = [...items];
  const results: R[] = [];
  let next = 0;
  const work = async () => {
    while (next < all.length) {
      const at = next++;
      results[at] = await action(all[at] as T);
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, all.length) }, work));
  return results;
}
