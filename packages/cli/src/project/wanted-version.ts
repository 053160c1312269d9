/** Which version of its language a directory asks for: `engines` of package.json, `.python-version`, pyproject.toml. */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { findRuntime, type Runtime, runtimes } from "@spry/function";
import type * as Semver from "semver";

/** A file that asks for a version, and what it says. */
interface Demand {
  /** For a user: "package.json". */
  file: string;
  /** For a user: "Node.js 22.x". */
  version: string;
  allows: (version: string) => boolean;
}

/** The runtime to choose. `remark`: what no runtime fulfils. */
export function fittingRuntime(
  root: string,
  usual: string,
  packageJson: Record<string, unknown>,
): { name: string; remark?: string } {
  const language = findRuntime(usual)?.language;
  const demand = language === "python" ? pythonDemand(root) : nodeDemand(packageJson);
  if (!demand) return { name: usual };
  const fitting = runtimes.filter(
    (each) => each.language === language && demand.allows(versionOf(each)),
  );
  if (fitting.some(({ name }) => name === usual)) return { name: usual };
  const current = fitting.filter(({ deprecated }) => !deprecated);
  const found = current[0] ?? fitting.at(-1);
  if (found) return { name: found.name };
  return {
    name: usual,
    remark: `${demand.file} asks for ${demand.version}, which no runtime has: ${usual} was chosen`,
  };
}

const versionOf = ({ interpreter }: Runtime): string => interpreter.replace(/^.*@/, "");

function nodeDemand({ engines }: Record<string, unknown>): Demand | undefined {
  const range = (engines as Record<string, unknown> | undefined)?.["node"];
  if (typeof range !== "string") return undefined;
  // It takes longer to load than the rest of the project, and few directories need it.
  const semver = createRequire(import.meta.url)("semver") as typeof Semver;
  if (semver.validRange(range) === null) return undefined;
  return {
    file: "package.json",
    version: `Node.js ${range}`,
    allows: (major) => semver.intersects(range, `${major}.x`, { includePrerelease: true }),
  };
}

function pythonDemand(root: string): Demand | undefined {
  const [, version] = /^\s*(?:cpython-)?(\d+\.\d+)/.exec(textOf(root, ".python-version")) ?? [];
  if (version)
    return {
      file: ".python-version",
      version: `Python ${version}`,
      allows: (each) => each === version,
    };
  const [, specifiers] =
    /^\s*requires-python\s*=\s*["']([^"']+)["']/m.exec(textOf(root, "pyproject.toml")) ?? [];
  if (!specifiers) return undefined;
  return {
    file: "pyproject.toml",
    version: `Python ${specifiers}`,
    allows: (each) => specifiers.split(",").every((one) => permits(one, each)),
  };
}

/** Whether some version `minor.*` of Python, such as 3.12.*, is in a specifier, such as `>=3.11` or `~=3.12.4`. */
function permits(specifier: string, minor: string): boolean {
  const [, operator = "", text = ""] = /^\s*([~=!<>]=?=?)\s*([\d.]+)/.exec(specifier) ?? [];
  const [major = 0, second, patch] = text.split(".").filter(Boolean).map(Number);
  const [ownMajor = 0, own = 0] = minor.split(".").map(Number);
  const order = ownMajor - major || (second === undefined ? 0 : own - second);
  if (operator === ">=" || operator === ">") return order >= 0;
  if (operator === "<=") return order <= 0;
  if (operator === "<") return patch ? order <= 0 : order < 0;
  if (operator === "~=" && patch === undefined) return order >= 0 && ownMajor === major;
  if (operator === "!=") return order !== 0 || patch !== undefined;
  return operator === "" || order === 0;
}

const textOf = (root: string, name: string): string => {
  const file = path.join(root, name);
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};
