/** What a command is about: the Functions of directories, of which a `spry.yaml` can have several. */
import { existsSync, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";
import { kymaConfigName } from "../kyma/config-yaml.ts";
import { UserError } from "../user-error.ts";
import { nameFrom } from "./directory-name.ts";
import { openProject, type Project } from "./project.ts";
import { configName } from "./schema.ts";
import { shownPath } from "./shown-path.ts";
import { readMember, readStack, type Stack } from "./stack.ts";

/** One Function. */
export interface Target {
  name: string;
  /** Directory with the `spry.yaml` that it is in. */
  base: string;
  /** Directory with its files. */
  directory: string;
  /** It is one of several of its file. */
  isMember: boolean;
  /** As it is now; an error where its directory is not a Function. */
  found: Project | UserError;
  /** Looks at it again. */
  open: () => Project;
}

/** The Functions of the directories; `only`: those with these names. At least one. */
export function targetsOf(directories: readonly string[], only: readonly string[] = []): Target[] {
  const all = directories.flatMap(targetsIn);
  for (const name of only)
    if (!all.some((each) => each.name === name))
      throw new UserError(
        `a Function ${name} does not exist in ${directories.map((each) => shownPath(path.resolve(each))).join(", ")}`,
        `choose one of ${all.map((each) => each.name).join(", ")}`,
      );
  const chosen = only.length === 0 ? all : all.filter(({ name }) => only.includes(name));
  checkDifferent(chosen);
  return chosen;
}

/** As `openProject`, with an error for the one Function that cannot be opened. */
export function projectOf({ found }: Target): Project {
  if (found instanceof UserError) throw found;
  return found;
}

/** Of its runtime, as far as that is known. */
export const languageOf = ({ found }: Target): Runtime["language"] =>
  found instanceof UserError ? "nodejs" : found.runtime.language;

function targetsIn(directory: string): Target[] {
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    return [targetOf(nameFrom(directory), directory, () => openProject(directory))];
  const root = realpathSync(directory);
  const stack = readStack(root);
  if (stack) return [...stack].map(([name, { directory: own }]) => memberOf(root, name, own));
  const hasConfig = [configName, kymaConfigName].some((name) => existsSync(path.join(root, name)));
  const above = hasConfig ? [] : membersAbove(root);
  if (above.length > 0) return above;
  return [targetOf(nameFrom(root), root, () => openProject(directory))];
}

const memberOf = (base: string, name: string, directory: string): Target => ({
  ...targetOf(name, base, () => openProject(base, (root) => readMember(root, name))),
  directory,
  isMember: true,
});

/** The Function that `open` finds; `name`: where it cannot be opened. */
export function targetOf(name: string, base: string, open: () => Project): Target {
  const found = attempt(open);
  return {
    name: found instanceof UserError ? name : found.name,
    base,
    directory: base,
    isMember: false,
    found,
    open,
  };
}

function attempt(open: () => Project): Project | UserError {
  try {
    return open();
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

/**
 * A directory without settings of its own that is one of several Functions of a `spry.yaml` above it, within the same repository. Files
 * of another user are not read: directories above may be shared.
 */
function membersAbove(root: string): Target[] {
  const { uid } = statSync(root);
  for (let below = root; !existsSync(path.join(below, ".git")); below = path.dirname(below)) {
    const base = path.dirname(below);
    if (base === below) return [];
    const file = statSync(path.join(base, configName), { throwIfNoEntry: false });
    const stack = file?.uid === uid ? readStack(base) : undefined;
    const names = stack ? namesIn(stack, root) : [];
    if (names.length > 0) return names.map((name) => memberOf(base, name, root));
  }
  return [];
}

const namesIn = (stack: Stack, root: string): string[] =>
  [...stack].flatMap(([name, { directory }]) => (realpathSync(directory) === root ? [name] : []));

function checkDifferent(targets: readonly Target[]): void {
  const seen = new Map<string, Target>();
  for (const target of targets) {
    const { name, base, found } = target;
    const namespace = found instanceof UserError ? undefined : found.config.namespace;
    const before = seen.get(`${namespace}/${name}`);
    if (before)
      throw new UserError(
        `${shownPath(before.base)} and ${shownPath(base)} are both Function ${name}`,
        "give one of them another name in its spry.yaml, or leave it out",
      );
    seen.set(`${namespace}/${name}`, target);
  }
}
