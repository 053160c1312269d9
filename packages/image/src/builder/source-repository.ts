/** What a deployed directory needs of the repository around it. It is in the source's image, in a folder of its own. */
import {
  type Dirent,
  existsSync,
  lstatSync,
  mkdirSync,
  renameSync,
  rmSync,
  type Stats,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { entriesBelow } from "../entries-below.ts";
import { type LayerFile } from "../layer.ts";
import { type SourceFile } from "./function-source.ts";
import { UserError } from "./user-error.ts";

const folder = ".spry-repository";
const description = `${folder}/source.json`;
const content = `${folder}/files/`;

/** As files of the source. `monorepo`: what a fetcher of Git would write to `source.json`; paths of `files`: from the repository's root. */
export function repositoryFiles(monorepo: object, files: readonly LayerFile[]): LayerFile[] {
  return [
    { path: description, content: JSON.stringify({ monorepo }) },
    ...files.map((file) => ({ ...file, path: `${content}${file.path}` })),
  ];
}

/**
 * Moves them from a source that has been fetched to `handover`, where a fetcher of Git puts the same. The source is in `files`, or
 * else in a directory. Returns the files that remain; undefined for a directory.
 */
export function takeRepository(
  handover: string,
  directory: string,
  files: SourceFile[] | undefined,
): SourceFile[] | undefined {
  const destination = join(handover, "monorepo");
  if (!files) {
    const found = join(directory, description);
    if (existsSync(found)) {
      refuseLinks(join(directory, folder));
      rmSync(destination, { recursive: true, force: true });
      renameSync(join(directory, content), destination);
      renameSync(found, join(handover, "source.json"));
    }
    rmSync(join(directory, folder), { recursive: true, force: true });
    return undefined;
  }
  const own = files.filter(({ path }) => !path.startsWith(`${folder}/`));
  if (own.length === files.length) return files;
  for (const file of files) {
    if (file.path === description) write(join(handover, "source.json"), file);
    else if (file.path.startsWith(content))
      write(join(destination, file.path.slice(content.length)), file);
  }
  return own;
}

/** A link could bring files of the builder itself, such as its credentials, into the image. `spry deploy` sends none. */
function refuseLinks(directory: string): void {
  const isLink = (entry: Dirent | Stats) => !entry.isFile() && !entry.isDirectory();
  if (isLink(lstatSync(directory)) || entriesBelow(directory).some(isLink))
    throw new UserError(`source: ${folder} may have files and folders only`);
}

function write(place: string, { content: bytes, mode }: SourceFile): void {
  mkdirSync(dirname(place), { recursive: true });
  writeFileSync(place, bytes, { mode });
}
