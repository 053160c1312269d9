/** An unpacked version whose files the next one may share. */
export interface EarlierVersion {
  /** Its root directory. */
  dir: string;
  /** What is known of its files: whether one is the same shows without opening it. */
  content?: ReadonlyMap<string, PlacedFile> | undefined;
}

/** A regular file that a layer has brought. */
export interface PlacedFile {
  size: number;
  /** Owner other than root, mode and digest; undefined for a large one. */
  identity?: string;
}

/** Of a layer with more files, nothing is remembered: they would be more memory than reading them again takes time. */
const maxPlaced = 50_000;

/** What a layer has brought, by path below the root directory. */
export class PlacedFiles {
  readonly files = new Map<string, PlacedFile>();
  /** Nothing was there before, and nothing was taken away or linked: these are all the regular files that have changed. */
  isWhole = true;
  #isTooMuch = false;

  add(path: string, file: PlacedFile): void {
    if (this.#isTooMuch) return;
    this.files.set(path, file);
    if (this.files.size <= maxPlaced) return;
    this.#isTooMuch = true;
    this.isWhole = false;
    this.files.clear();
  }
}
