/** In the directory of a Function, commands about one need no name, and its name means that Function. */
import { existsSync } from "node:fs";
import { type Argument, type Command } from "commander";
import { UserError } from "../user-error.ts";
import { functionNamed } from "./function-name.ts";
import { commandIn } from "./other-names.ts";

/** Without one of them, a directory is a Function only for those who say so. */
const files = ["spry.yaml", "config.yaml"];

/**
 * What was typed, with the name and the namespace that `spry.yaml` or `config.yaml` of this directory gives its Function, where a command
 * needs a name and has none, and with the namespace where that name was typed, or where the command is about Secrets. `makeProgram`: for a look at the words, which leaves
 * the program as it is.
 */
export async function withNameHere(
  args: readonly string[],
  program: Command,
  makeProgram: () => Command,
): Promise<readonly string[]> {
  const named = (of: Command) => of.commands.find((each) => each.name() === commandIn(args));
  const known = named(program);
  const isAboutSecrets = known?.name() === "secrets";
  const isAbout = known && (isAboutSecrets || [known, ...known.commands].some(functionOf));
  if (!isAbout || args.includes("--") || !files.some((file) => existsSync(file))) return args;
  const reader = makeProgram();
  const { operands, unknown } = reader.parseOptions([...args]);
  const { command, words } = wordsOf(named(reader) as Command, [...operands.slice(1), ...unknown]);
  const argument = functionOf(command);
  const isGiven = reader.opts()["namespace"] !== undefined;
  if (isAboutSecrets && !isGiven) return [...args, ...(await namespaceOfAll())];
  if (!argument) return args;
  const at = command.registeredArguments.indexOf(argument);
  const names = argument.variadic ? words.slice(at) : words.slice(at, at + 1);
  if (names.length > 0) return isGiven ? args : [...args, ...(await namespaceOf(names))];
  const others = command.registeredArguments.filter((each) => each !== argument);
  if (!argument.required || argument.variadic || others.some((each) => each.required)) return args;
  if (command !== named(reader)) return args;
  const [target, ...more] = await targetsHere();
  if (!target || more.length > 0)
    throw new UserError(
      "this directory has several Functions",
      `name one of them: ${[target, ...more].map((each) => each?.name).join(", ")}`,
    );
  const { namespace } = target;
  const isOwn = namespace === undefined || isGiven;
  return [...args, target.name, ...(isOwn ? [] : ["--namespace", namespace])];
}

const functionOf = (command: Command): Argument | undefined =>
  command.registeredArguments.find((each) => ["name", "names", "function"].includes(each.name()));

/** The words behind a command, or behind the one below it that they name. */
function wordsOf(command: Command, args: string[]): { command: Command; words: string[] } {
  const { operands, unknown } = command.parseOptions(args);
  const below = command.commands.find((each) => each.name() === operands[0]);
  return below ? wordsOf(below, [...operands.slice(1), ...unknown]) : { command, words: operands };
}

async function targetsHere(): Promise<{ name: string; namespace: string | undefined }[]> {
  const { targetsOf } = await import("../project/targets.ts");
  return targetsOf(["."]).map(({ name, found }) => ({
    name,
    namespace: found instanceof UserError ? undefined : found.config.namespace,
  }));
}

/** A Function that cannot be read is not in the way of a command about something else. */
const readableTargets = (): ReturnType<typeof targetsHere> =>
  targetsHere().catch((error: unknown) => {
    if (error instanceof UserError) return [];
    throw error;
  });

/** As an option: where the Secrets are that the Functions of this directory can use. */
async function namespaceOfAll(): Promise<string[]> {
  const own = await readableTargets();
  const [first, ...others] = new Set(own.map(({ namespace }) => namespace));
  if (others.length > 0)
    throw new UserError(
      "the Functions of this directory are in different namespaces",
      "name the one that is meant with -n NAMESPACE",
    );
  return first === undefined ? [] : ["--namespace", first];
}

/** As an option: that of the names that are Functions of this directory. */
async function namespaceOf(names: readonly string[]): Promise<string[]> {
  const own = await readableTargets();
  const namespaces = names.map((name) => {
    const found = own.find((each) => each.name === functionNamed(name));
    return found?.namespace;
  });
  const [first] = namespaces;
  if (namespaces.some((each) => each !== first))
    throw new UserError(
      `${names.join(", ")} are in different namespaces`,
      "name those of one namespace, with -n NAMESPACE",
    );
  return first === undefined ? [] : ["--namespace", first];
}
