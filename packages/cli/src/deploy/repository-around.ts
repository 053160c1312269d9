/** What a directory needs of the repository around it: the npm packages of its workspace, the root's lock file, `file:` folders. */
import { statSync } from "node:fs";
import path from "node:path";
import { entriesBelow, repositoryFiles } from "@spry/image";
import { copyMonorepo, GitError } from "@spry/source";
import { listSource } from "../project/files.ts";
import { mainOf, type Project } from "../project/project.ts";
import { copiesForLinks } from "../project/source-links.ts";
import { UserError } from "../user-error.ts";

/** As files of the source; none for a directory that stands alone. `scratch`: for copies, until they are sent. */
export async function repositoryAround(
  { root: directory, runtime }: Project,
  scratch: string,
): Promise<ReturnType<typeof repositoryFiles>> {
  if (runtime.language !== "nodejs") return [];
  const found = await copyMonorepo(directory, scratch).catch((error: unknown) => {
    throw error instanceof GitError ? new UserError(error.message) : error;
  });
  if (!found) return [];
  const base = path.resolve(directory, path.relative(`/${found.folder}`, "/"));
  const packages = found.packages.map((each) => path.posix.join(found.root, each));
  // What is secret by its name, or ignored, stays here, as of the directory itself.
  const listed = found.packages.map((each) => {
    const folder = path.join(base, each);
    return listSource(folder, { handler: mainOf(folder)[0] }).files;
  });
  const sent = new Set(
    listed.flatMap((files, at) => files.map((file) => `${packages[at]}/${file.path}`)),
  );
  const isPackage = (name: string) => packages.some((each) => name.startsWith(`${each}/`));
  const files = entriesBelow(scratch)
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .map((file) => ({ file, name: path.relative(scratch, file).split(path.sep).join("/") }))
    .filter(({ name }) => sent.has(name) || !isPackage(name))
    .map(({ file, name }) => ({ path: name, file, size: statSync(file).size, mode: 0o644 }));
  // A step that has credentials reads these files in the image, so links are replaced by copies.
  const linked = listed.flatMap((own, at) =>
    copiesForLinks(own).map(({ path: name, file, size }) => ({
      path: `${packages[at]}/${name}`,
      file,
      size,
      mode: 0o644,
    })),
  );
  return repositoryFiles(found, [...files, ...linked]);
}
