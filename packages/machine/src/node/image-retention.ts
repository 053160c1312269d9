const unusedForMs = 24 * 3600 * 1000;
/** Of those that nothing names, so many that were used more recently stay, for a rollback: each edit leaves one. */
const maxUnnamed = 20;
/** One that was just pulled may be for a Pod that is about to start. */
const minUnusedMs = 120_000;
/** The part of the disk that images which no Pod uses may take. */
const budgetShare = 0.25;

/** What images on this machine are needed for, by digest. */
export interface ImageUses {
  /** By Pods. */
  inUse: ReadonlySet<string>;
  /** By workloads without Pods at present: a Function that starts from zero must not wait for a registry. Undefined: not known. */
  named: ReadonlySet<string> | undefined;
}

interface Image {
  readonly digest: string;
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly lastUsed: number;
}

/** Images that no Pod uses, and has not for so long, in the order in which they can be spared. */
export function spareImages<T extends Image>(
  images: readonly T[],
  { inUse, named }: ImageUses,
  { now, minAgeMs }: { now: number; minAgeMs: number },
): T[] {
  const isNamed = ({ digest }: Image) => Number(named?.has(digest) ?? false);
  return images
    .filter(({ digest, lastUsed }) => !inUse.has(digest) && now - lastUsed >= minAgeMs)
    .toSorted((a, b) => isNamed(a) - isNamed(b) || a.lastUsed - b.lastUsed);
}

/**
 * Which images are to go, whatever room there is: those that nothing names, after a day or when there are more than
 * twenty; and of all that no Pod uses, those that can be spared first, until the others take a quarter of the disk.
 */
export function superfluousImages<T extends Image>(
  images: readonly T[],
  uses: ImageUses,
  { now, diskBytes }: { now: number; diskBytes: number },
): T[] {
  const spare = spareImages(images, uses, { now, minAgeMs: minUnusedMs });
  const unnamed = uses.named ? spare.filter(({ digest }) => !uses.named?.has(digest)) : [];
  const going = new Set(
    unnamed.filter(
      ({ lastUsed }, index) => index < unnamed.length - maxUnnamed || lastUsed <= now - unusedForMs,
    ),
  );
  let bytes = spare.reduce((sum, image) => sum + (going.has(image) ? 0 : image.size), 0);
  for (const image of spare) {
    if (bytes <= diskBytes * budgetShare) break;
    if (going.has(image)) continue;
    going.add(image);
    bytes -= image.size;
  }
  return [...going];
}
