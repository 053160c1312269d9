import { readFileSync } from "node:fs";
import { BuildError, planInstallation } from "@spry/image";
import { isManifest } from "../dev/dependencies.ts";
import { type SourceEntry } from "../project/files.ts";
import { hasBuildScript, type Project } from "../project/project.ts";
import { UserError } from "../user-error.ts";

const code = /\.[cm]?[jt]s$/;
const maxBytes = 1_000_000;

/**
 * Whether a build has nothing to install and no script to run. It is only a hint: a builder that finds something after all
 * refuses to run it. Large sources are not looked through.
 */
export function isPlainSource({ root, runtime }: Project, files: readonly SourceEntry[]): boolean {
  const isBuilt = runtime.language === "nodejs" && hasBuildScript(root);
  const hasProject = files.some((file) => file.path === "pyproject.toml");
  const relevant = files.filter(
    ({ path, link }) => !link?.isFolder && (isManifest(path) || code.test(path)),
  );
  const isLarge = relevant.reduce((sum, { size }) => sum + size, 0) > maxBytes;
  const read = isLarge ? relevant.filter(({ path }) => isManifest(path)) : relevant;
  const sources = read.map((each) => ({
    path: each.path,
    content: readFileSync(each.file),
    mode: 0o644,
  }));
  const plan = planned({ files: sources, runtime: runtime.name });
  return !isBuilt && !hasProject && !isLarge && plan === undefined;
}

/** What cannot be installed at all is said before anything is sent. */
function planned(request: Parameters<typeof planInstallation>[0]) {
  try {
    return planInstallation(request);
  } catch (error) {
    if (!(error instanceof BuildError)) throw error;
    throw new UserError(error.message, "nothing was deployed; what ran before still runs");
  }
}
