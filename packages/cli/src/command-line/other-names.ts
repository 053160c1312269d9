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
  start: "up",
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
  generate: "init",
  triggers: "deploy",
  pages: "deploy",
  preview: "dev",
  stop: "down",
  info: "describe FUNCTION",
  show: "describe FUNCTION",
  queues: "events list",
  undeploy: "delete FUNCTION",
  edit: "deploy",
  update: "deploy",
  upload: "deploy",
  cron: "schedule run FUNCTION SCHEDULE",
  schedules: "schedule run FUNCTION SCHEDULE",
  ps: "get",
  functions: "get",
  pods: "describe FUNCTION",
  instances: "describe FUNCTION",
  namespaces: "get -A",
  ns: "get -A",
  templates: "init --list",
  config: "env list FUNCTION",
  vars: "env list FUNCTION",
  variables: "env list FUNCTION",
  "port-forward": "open FUNCTION",
  forward: "open FUNCTION",
  url: "open FUNCTION",
  urls: "get -o wide",
  browse: "open FUNCTION",
  subscribe: "apply -f SUBSCRIPTION.yaml",
  trigger: "invoke FUNCTION",
  curl: "invoke FUNCTION",
  attach: "debug FUNCTION",
  autoscale: "scale FUNCTION INSTANCES",
  hide: "unexpose FUNCTION",
  promote: "traffic FUNCTION latest=100",
  health: "doctor",
  check: "doctor",
  destroy: "delete FUNCTION",
  watch: "get -w",
  log: "logs FUNCTION",
  // With the word that follows.
  "secret put": "secrets set SECRET KEY",
  "secret list": "secrets list",
  "secret delete": "secrets set SECRET KEY-",
  "secret bulk": "secrets import SECRET FILE",
  "secrets put": "secrets set SECRET KEY",
  "secrets delete": "secrets set SECRET KEY-",
  "secrets bulk": "secrets import SECRET FILE",
  "env get": "env list FUNCTION",
  "env unset": "env set FUNCTION NAME-",
  "env delete": "env set FUNCTION NAME-",
  "env remove": "env set FUNCTION NAME-",
  "env rm": "env set FUNCTION NAME-",
  "secrets get": "secrets list",
  "secrets unset": "secrets set SECRET KEY-",
  "secrets remove": "secrets set SECRET KEY-",
  "secrets rm": "secrets set SECRET KEY-",
  "secrets create": "secrets set SECRET KEY=VALUE",
  "schedule list": "describe FUNCTION",
  "events send": "events publish TYPE",
  "async delete": "async cancel ID",
  "versions upload": "deploy",
  "versions deploy": "traffic FUNCTION 3=90,latest=10",
};
/** Options of theirs by command; those that change nothing here are accepted (program.ts). */
const withEnvironment = "a namespace takes the place of an environment: -n NAME";
const ourOptions: Readonly<Record<string, string>> = {
  "dev --remote": "`spry dev` runs on this machine; `spry deploy` runs it on the platform",
  "dev --env": withEnvironment,
  "deploy --env": withEnvironment,
  "deploy --dry-run": "`spry test` runs it here, with its tests",
  "deploy -f": "`spry deploy DIR` deploys a directory; `spry apply -f FILE` applies manifests",
  "deploy --filename":
    "`spry deploy DIR` deploys a directory; `spry apply -f FILE` applies manifests",
  "init -l": "a runtime has the language: `spry init DIR --runtime python312`, or nodejs24",
  "init --language": "a runtime has the language: `spry init DIR --runtime python312`, or nodejs24",
  "init --lang": "a runtime has the language: `spry init DIR --runtime python312`, or nodejs24",
  "logs --lines": "the last lines: `spry logs FUNCTION --tail 20`",
  "scale --replicas": "write it as in `spry scale FUNCTION 2`",
  "deploy --var":
    "variables are in env of spry.yaml; `spry env set FUNCTION NAME=VALUE` changes one",
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
  // What most commands answer with their version.
  if (args.length === 1 && args[0] === "-v") return ["--version"];
  const at = commandAt(args);
  return at < 0 ? [...args] : withoutKind(args, at, { takesFunctions, isPath: existsSync });
}

/** Throws a UserError when the command is one of theirs. `args`: what was typed after `spry`. */
export function refuseOtherNames(args: readonly string[]): void {
  const at = commandAt(args);
  // The original's commands about Functions have that word before them.
  if (args[at] === "function") return refuseOthersBelow(args[at + 1] ?? "");
  const name = args[at] ?? "";
  refuseOtherOptions(name, args.slice(at + 1));
  const both = `${name} ${args[at + 1] ?? ""}`;
  const typed = Object.hasOwn(ours, both) ? both : name;
  if (!Object.hasOwn(ours, typed)) return;
  throw new UserError(
    `spry has no command ${typed}`,
    `use \`${spryCommand(ours[typed] ?? "")}\`, or see \`${spryCommand("--help")}\``,
  );
}

function refuseOthersBelow(name: string): void {
  if (name === "" || name.startsWith("-") || ["create", "init", "help"].includes(name)) return;
  const use = spryCommand(ours[name] ?? name);
  throw new UserError(
    `the command function has no command ${name}`,
    `use \`${use}\`, or see \`${spryCommand("function --help")}\``,
  );
}

function refuseOtherOptions(command: string, args: readonly string[]): void {
  for (const each of args) {
    // What follows belongs to the user's own program.
    if (each === "--") return;
    const [option = ""] = each.split("=");
    const way =
      Object.hasOwn(ourOptions, `${command} ${option}`) && ourOptions[`${command} ${option}`];
    if (way) throw new UserError(`spry ${command} has no option ${option}`, way);
  }
}
