import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type SourceFile } from "./function-source.ts";
import { runInstaller, shownLine } from "./installer.ts";
import { UserError } from "./user-error.ts";

const projectFile = "pyproject.toml";
/** Locks of uv, Poetry and PEP 751: each lists the packages that were chosen, by name and version. */
const lockFiles = ["pylock.toml", "uv.lock", "poetry.lock"];

/** Reads TOML with the standard library of the Python that the Function runs on. */
const reader = `
import json, sys, tomllib
found = {"dependencies": [], "pins": {}}
for name in sys.argv[1:]:
    try:
        with open(name, "rb") as file:
            content = tomllib.load(file)
    except tomllib.TOMLDecodeError as error:
        sys.exit(f"{name}: {error}")
    if name == "${projectFile}":
        project = content.get("project", {})
        if not isinstance(project, dict) or not all(isinstance(one, str) for one in project.get("dependencies", [])):
            sys.exit(f"{name}: project.dependencies: expected a list of requirements")
        found["dependencies"] = project.get("dependencies", [])
        found["poetry"] = "dependencies" not in project and len(content.get("tool", {}).get("poetry", {}).get("dependencies", {})) > 1
    else:
        for package in content.get("package", content.get("packages", [])):
            if isinstance(package, dict) and isinstance(package.get("version"), str) and "name" in package:
                found["pins"].setdefault(package["name"], []).append(package["version"])
print(json.dumps(found))
`;

interface Project {
  dependencies: string[];
  pins: Record<string, string[]>;
  poetry?: boolean;
}

/**
 * A source whose dependencies are in pyproject.toml (`project.dependencies`, PEP 621): gets a requirements.txt with
 * the same content, and as constraints the versions of a lock file next to it. A requirements.txt of the author's
 * takes precedence; a source without a project is returned as it is.
 */
export async function withProjectFile(
  files: readonly SourceFile[],
  scratch: string,
): Promise<readonly SourceFile[]> {
  const has = (path: string) => files.find((file) => file.path === path);
  const requirements = has("requirements.txt")?.content.toString() ?? "";
  if (!has(projectFile) || requirements.replace(/#.*/g, "").trim() !== "") return files;
  const project = await readProject(
    [projectFile, ...lockFiles].flatMap((path) => has(path) ?? []),
    scratch,
  );
  if (project.poetry)
    throw new UserError(
      `${projectFile}: dependencies are only in [tool.poetry.dependencies]: list them in [project] dependencies, or in a requirements.txt`,
    );
  if (project.dependencies.length === 0) return files;
  const constraints = Object.entries(project.pins)
    // A package that is there in several versions is chosen by markers, which only its tool knows.
    .flatMap(([name, versions]) => (new Set(versions).size === 1 ? `${name}==${versions[0]}` : []));
  const file = (path: string, lines: string[]): SourceFile => ({
    path,
    content: Buffer.from(lines.join("\n")),
    mode: 0o644,
  });
  const pinned = constraints.length > 0 ? ["-c constraints.lock.txt"] : [];
  return [
    ...files.filter(({ path }) => path !== "requirements.txt"),
    file("requirements.txt", [...pinned, ...project.dependencies]),
    file("constraints.lock.txt", constraints),
  ];
}

async function readProject(files: readonly SourceFile[], scratch: string): Promise<Project> {
  const directory = join(scratch, "project");
  mkdirSync(directory, { recursive: true });
  for (const { path, content } of files) writeFileSync(join(directory, path), content);
  const names = files.map(({ path }) => path);
  const run = { directory, home: directory };
  const { code, output } = await runInstaller("python3", ["-I", "-c", reader, ...names], run);
  if (code === 0) return JSON.parse(output) as Project;
  const message = shownLine(output.trim().split("\n").at(-1) ?? "");
  if (code === 1) throw new UserError(message);
  throw new Error(`reading ${projectFile}: python3 failed with exit code ${code}: ${message}`);
}
