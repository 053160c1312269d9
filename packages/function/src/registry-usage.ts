/** How much the platform's registry stores, where, and why. Sizes are in bytes. */
export interface RegistryUsage {
  stored: number;
  quota: number;
  /** How many earlier images of each Function stay. */
  previousImages: number;
  /** For how long dependency layers stay that no build asks for, in milliseconds. */
  cacheMaxAgeMs: number;
  /** The largest first. */
  repositories: RepositoryUsage[];
}

/** A Function's images, what the platform brings, dependency layers, or what users have pushed. */
export type RepositoryKind = "function" | "system" | "cache" | "foreign";

export interface RepositoryUsage {
  name: string;
  kind: RepositoryKind;
  /** Of all that it refers to. Other repositories may refer to the same content, which is stored once. */
  bytes: number;
  /** The newest first, and no more than a page shows; without what is about another image, and without the parts of an index. */
  images: ImageUsage[];
  imageCount: number;
}

export interface ImageUsage {
  digest: string;
  tags: string[];
  /** With layers that other images have, too. */
  bytes: number;
  /** When it was last pushed or asked for: RFC 3339. */
  usedAt: string;
  /** Null: the next cleaning removes it. */
  reason: ImageReason | null;
}

/**
 * Why an image stays. `used`: something refers to it; `recent`: it was pushed or asked for a moment ago; `foreign`: not of Spry's
 * naming. The others stay until room is needed: `previous`, an earlier image of a Function; `cached`, a dependency layer.
 */
export type ImageReason = "used" | "recent" | "foreign" | "previous" | "cached";
