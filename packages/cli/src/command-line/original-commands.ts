/** Commands that the original has, and we have in another form. */
import { type Command, Option } from "commander";
import { suggesting } from "./suggestions.ts";
import { collect, replicas, secondsOrNone } from "./values.ts";

export function addOriginalCommands(program: Command): void {
  const fn = program
    .command("function")
    .description("create and init of Kyma's CLI; its get, delete, explain and eject work, too");

  fn.command("create <words...>")
    .usage("[options] [nodejs|python] NAME")
    .description("create or change a Function from one file, and follow it until it runs")
    .option("-s, --source <file>", "its code (default: an example)")
    .option("-d, --dependencies <file>", "its package.json or requirements.txt")
    .option("--runtime <name>", "runtime (default: nodejs24, or python312)")
    .option("--node-version <number>", "version of Node.js; also as -v or --version")
    .option("--replicas <number>", "how many instances run", replicas)
    .option("--env <name=value>", "environment variable (repeatable)", collect)
    .option("--secret-mount <secret=path>", "directory with a Secret's keys (repeatable)", collect)
    .option("--runtime-image-override <image>", "base image of the Function's image")
    .option("--istio-injection", "have Istio add its sidecar to the Pods")
    .option("--dry-run", "validate on the server, without storing anything")
    .addOption(
      suggesting(new Option("-o, --output <format>", "json or yaml: the Function"), [
        "json",
        "yaml",
      ]),
    )
    .option("--no-wait", "return as soon as the Function is stored")
    .option("-t, --timeout <seconds>", "how long to follow the Function", secondsOrNone, 300)
    .action(async (words, _options, command) =>
      (await import("../commands/create.ts")).create(words, command.optsWithGlobals()),
    );

  fn.command("init [language]")
    .description("write a handler and its package.json or requirements.txt: nodejs or python")
    .option("--dir <dir>", "directory to write to", ".")
    .option("--runtime <name>", "runtime (default: nodejs24, or python312)")
    .option("--force", "overwrite files")
    .action(async (language, options) =>
      (await import("../commands/create.ts")).initCode(language, options),
    );
}
