import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type SourceFile } from "./function-source.ts";
import { nodeDependencies } from "./node-dependencies.ts";
import { pythonDependencies, pythonVersion } from "./python-dependencies.ts";
import { withProjectFile } from "./pyproject.ts";
import { placesIn } from "./python-downloads.ts";

export interface InstallRequest {
  /** Of the source: manifests and lock files, and the code, which names undeclared packages. */
  files: readonly SourceFile[];
  /** `nodejs24`, say. */
  runtime: string;
  /** An `.npmrc` with registries and credentials. */
  npmConfig?: string | undefined;
  /** A `pip.conf` with indexes and credentials. */
  pipConfig?: string | undefined;
  /** Gets progress, a line each. */
  report?: (line: string) => void;
}

/** An installation that a source needs, for use outside of an image. */
export interface PlannedInstallation {
  /** Names everything that determines the result: 40 hexadecimal digits. */
  key: string;
  /**
   * Installs into `directory`, which must be empty, and runs the scripts of packages. Returns the directory of the
   * modules: `node_modules`, or what Python has on its path. Throws a `UserError` for what the author must change.
   */
  install(directory: string): Promise<string>;
  /** The same directory of an earlier installation. */
  modulesIn(directory: string): string;
}

/**
 * As `planInstallation`, of a source that may have its dependencies in pyproject.toml (`withProjectFile`). `scratch`: a directory for
 * this call. The Python on `PATH` reads the file.
 */
export async function planProject(
  request: InstallRequest,
  scratch: string,
): Promise<PlannedInstallation | undefined> {
  if (pythonVersion(request.runtime) === undefined) return planInstallation(request);
  return planInstallation({ ...request, files: await withProjectFile(request.files, scratch) });
}

/** Whether a file is one that an installation reads, by its path: manifests, lock files, included requirements, archives of packages. */
export const isInstallationInput = (path: string): boolean =>
  /(?:^|\/)(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|\.npmrc)$/.test(path) ||
  /\.(?:txt|in|toml|lock|tgz|tar\.gz|tar)$/i.test(path);

/** What the builder would install for a source; undefined when that is nothing. `npm`, or `pip`, is the one on `PATH`. */
export function planInstallation(request: InstallRequest): PlannedInstallation | undefined {
  const { files, runtime, npmConfig, pipConfig, report } = request;
  const version = pythonVersion(runtime);
  const place = "app";
  const installation =
    version === undefined
      ? nodeDependencies(files, place, {
          npmConfig,
          codeIsStable: true,
          report,
          onLine: report,
        })
      : pythonDependencies(files, version, place, { pipConfig, ...(report && { report }) });
  if (!installation) return undefined;
  const system = [process.platform, process.arch];
  const input = JSON.stringify([installation.inputs, runtime, system]);
  const modulesIn = (directory: string) =>
    version === undefined ? join(directory, "install", "node_modules") : placesIn(directory).target;
  return {
    key: createHash("sha256").update(input).digest("hex").slice(0, 40),
    modulesIn,
    async install(directory) {
      if (await installation.fetch(directory)) await installation.runScripts(directory);
      const modules = modulesIn(directory);
      if (!existsSync(modules)) throw new Error(`${modules} does not exist after the installation`);
      return modules;
    },
  };
}
