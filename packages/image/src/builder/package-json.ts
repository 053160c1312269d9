import { type SourceFile } from "./function-source.ts";
import { UserError } from "./user-error.ts";

/** What of a package.json the builder looks at. */
export type PackageJson = Record<string, unknown>;

/** Fields that decide what an installer puts into node_modules. */
const dependencyFields = [
  "dependencies",
  "optionalDependencies",
  "peerDependencies",
  "peerDependenciesMeta",
  "devDependencies",
  "bundleDependencies",
  "bundledDependencies",
  "overrides",
  "workspaces",
  "engines",
] as const;
const installedFields = ["dependencies", "optionalDependencies", "peerDependencies"] as const;
const installScripts = [
  "preinstall",
  "install",
  "postinstall",
  "prepublish",
  "preprepare",
  "prepare",
  "postprepare",
] as const;

/** A Function's package.json; undefined when there is none, or nothing in it but blanks. */
export function readPackageJson(files: readonly SourceFile[]): PackageJson | undefined {
  const file = files.find(({ path }) => path === "package.json");
  const text = file?.content.toString("utf8").replace(/^\uFEFF/, "") ?? "";
  if (text.trim() === "") return undefined;
  const value = parseJson(text);
  if (value === null || typeof value !== "object" || Array.isArray(value))
    throw new UserError("package.json: expected an object");
  const packageJson = value as PackageJson;
  for (const field of [...installedFields, "devDependencies"]) checkVersions(packageJson, field);
  return packageJson;
}

export function hasDependencies(packageJson: PackageJson | undefined, withDev = false): boolean {
  const fields = withDev ? [...installedFields, "devDependencies"] : installedFields;
  return fields.some((field) => Object.keys(packageJson?.[field] ?? {}).length > 0);
}

/** Scripts of the package itself that npm runs when it installs its dependencies. */
export function ownInstallScripts({ scripts }: PackageJson): string[] {
  return installScripts.filter((name) => Object.hasOwn(scripts ?? {}, name));
}

/** Everything in package.json that the installed tree depends on; the rest may change freely. */
export function dependencyInput(packageJson: PackageJson): PackageJson {
  const input: PackageJson = {};
  for (const field of dependencyFields)
    if (packageJson[field] !== undefined) input[field] = packageJson[field];
  const scripts = (packageJson["scripts"] ?? {}) as Record<string, unknown>;
  for (const script of installScripts)
    if (scripts[script] !== undefined) input[script] = scripts[script];
  return input;
}

function checkVersions(packageJson: PackageJson, field: string): void {
  const value = packageJson[field];
  if (value === undefined) return;
  const valid =
    value !== null &&
    typeof value === "object" &&
    Object.values(value).every((version) => typeof version === "string");
  if (!valid) throw new UserError(`package.json: ${field}: expected names with a version each`);
  for (const [name, version] of Object.entries(value as Record<string, string>))
    if (/^(?:workspace|catalog|portal|patch):/.test(version))
      throw new UserError(
        `package.json: ${field}: npm cannot install ${name} at "${version}", which only other package managers read: write "*" for a package of the same npm workspaces, "file:./FOLDER" for a folder, or a version`,
      );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = (error as Error).message;
    const position = Number(/at position (\d+)/.exec(message)?.[1] ?? unexpectedTokenAt(text));
    const before = text.slice(0, position).split("\n");
    const what = message.replace(/,? (?:in JSON at|".*" is not valid JSON|\.\.\.).*$/s, "");
    const place = `line ${before.length} column ${(before.at(-1)?.length ?? 0) + 1}`;
    throw new UserError(`package.json: ${place}: ${what}`);
  }
}

/**
 * The parser does not say where an unexpected token is. It does not find one in a shorter text that
 * ends before it: the shortest text with that error ends with the token.
 */
function unexpectedTokenAt(text: string): number {
  let without = 0;
  let within = text.length;
  while (within - without > 1) {
    const middle = (without + within) >> 1;
    if (hasUnexpectedToken(text.slice(0, middle))) within = middle;
    else without = middle;
  }
  return Math.max(0, within - 1);
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text);
    return false;
  } catch (error) {
    return (error as Error).message.startsWith("Unexpected token");
  }
}
