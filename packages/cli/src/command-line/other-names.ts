/** Names of commands in other tools: for each, the message names our command. */
import { existsSync } from "node:fs";
import { type Command } from "commander";
import { withoutKind } from "./function-name.ts";
import { spryCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

const ours: Readonly<Record<string, string>> = {
  publish: "deploy",
  push: "deploy",
  create: "init",
  new: "init",
  start: "dev",
  serve: "dev",
  tail: "logs FUNCTION -f",
  deployments: "history FUNCTION",
  versions: "history FUNCTION",
  revisions: "history FUNCTION",
  secret: "secrets",
  list: "get",
  ls: "get",
  remove: "delete FUNCTION",
  rm: "delete FUNCTION",
  call: "invoke FUNCTION",
  exec: "invoke FUNCTION",
  whoami: "status",
  login: "status",
  undo: "rollback FUNCTION",
};
/** Options with a value that may precede a command. */
const withValue = new Set(["--kubeconfig", "-n", "--namespace"]);

const commandAt = (args: readonly string[]): number =>
  args.findIndex((each, index) => !each.startsWith("-") && !withValue.has(args[index - 1] ?? ""));

/** The command that was typed; empty where there is none. */
export const commandIn = (args: readonly string[]): string => args[commandAt(args)] ?? "";

/** As our commands are written, where a kind's name stands where others have it. */
export function typedCommand(args: readonly string[], program: Command): string[] {
  const takesFunctions = (name: string) =>
    program.commands
      .find((each) => each.name() === name)
      ?.registeredArguments.some((each) => ["name", "names"].includes(each.name())) ?? false;
  const at = commandAt(args);
  return at < 0 ? [...args] : withoutKind(args, at, { takesFunctions, isPath: existsSync });
}

/** Throws a UserError when the command is one of theirs. `args`: what was typed after `spry`. */
export function refuseOtherNames(args: readonly string[]): void {
  const at = commandAt(args);
  // The original's commands about Functions have that word before them.
  if (args[at] === "function") return refuseOthersBelow(args[at + 1] ?? "");
  const name = args[at] ?? "";
  if (!Object.hasOwn(ours, name)) return;
  throw new UserError(
    `spry has no command ${name}`,
    `use \`${spryCommand(ours[name] ?? "")}\`, or see \`${spryCommand("--help")}\``,
  );
}

function refuseOthersBelow(name: string): void {
  if (name === "" || name.startsWith("-") || ["create", "init", "help"].includes(name)) return;
  const use = spryCommand(ours[name] ?? name);
  throw new UserError(
    `spry function has no command ${name}`,
    `use \`${use}\`, or see \`${spryCommand("function --help")}\``,
  );
}
