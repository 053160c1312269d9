import { readFileSync } from "node:fs";
import { planInstallation } from "@spry/image";
import { isManifest } from "../dev/dependencies.ts";
import { type SourceEntry } from "../project/files.ts";
import { hasBuildScript, type Project } from "../project/project.ts";

const code = /\.[cm]?[jt]s$/;
const maxBytes = 1_000_000;

/**
 * Whether a build has nothing to install and no script to run. It is only a hint: a builder that finds something after all
 * refuses to run it. Large sources are not looked through.
 */
export function isPlainSource({ root, runtime }: Project, files: readonly SourceEntry[]): boolean {
  if (runtime.language === "nodejs" && hasBuildScript(root)) return false;
  if (files.some((file) => file.path === "pyproject.toml")) return false;
  const relevant = files.filter(
    ({ path, link }) => !link?.isFolder && (isManifest(path) || code.test(path)),
  );
  if (relevant.reduce((sum, { size }) => sum + size, 0) > maxBytes) return false;
  const sources = relevant.map((each) => ({
    path: each.path,
    content: readFileSync(each.file),
    mode: 0o644,
  }));
  return planInstallation({ files: sources, runtime: runtime.name }) === undefined;
}
