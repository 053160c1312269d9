/** In the directory of a Function, commands about one need no name. */
import { existsSync } from "node:fs";
import { type Command } from "commander";
import { UserError } from "../user-error.ts";
import { commandIn } from "./other-names.ts";

/** Without one of them, a directory is a Function only for those who say so. */
const files = ["spry.yaml", "config.yaml"];

/**
 * What was typed, with the name and the namespace that `spry.yaml` or `config.yaml` of this directory gives its Function, where a command
 * needs a name and has none. `makeProgram`: for a look at the words, which leaves the program as it is.
 */
export async function withNameHere(
  args: readonly string[],
  program: Command,
  makeProgram: () => Command,
): Promise<readonly string[]> {
  const name = commandIn(args);
  const command = program.commands.find((each) => each.name() === name);
  const [first, ...others] = command?.registeredArguments ?? [];
  const needsName = first?.required && first.name() === "name" && !first.variadic;
  if (!needsName || others.some((each) => each.required) || !files.some((file) => existsSync(file)))
    return args;
  const reader = makeProgram();
  const { operands, unknown } = reader.parseOptions([...args]);
  const own = reader.commands.find((each) => each.name() === name)?.parseOptions(unknown);
  if (operands.length !== 1 || own?.operands.length !== 0 || args.includes("--")) return args;
  const { targetsOf } = await import("../project/targets.ts");
  const [target, ...more] = targetsOf(["."]);
  if (!target || more.length > 0)
    throw new UserError(
      "this directory has several Functions",
      `name one of them: ${[target, ...more].map((each) => each?.name).join(", ")}`,
    );
  const { found } = target;
  const namespace = found instanceof UserError ? undefined : found.config.namespace;
  const isGiven = reader.opts()["namespace"] !== undefined;
  return [
    ...args,
    target.name,
    ...(namespace === undefined || isGiven ? [] : ["--namespace", namespace]),
  ];
}
