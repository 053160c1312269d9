/** Commands about the command itself, and about the kind Function. */
import { Argument, type Command } from "commander";
import { jsonOutput } from "./json-output.ts";
import { suggesting } from "./suggestions.ts";

export function addOtherCommands(program: Command): void {
  program
    .command("explain [field]")
    .description("show what a field of a Function means: spec.source")
    .action(async (field) => (await import("../commands/explain.ts")).explain(field));

  program
    .command("schema")
    .addArgument(suggesting(new Argument("[file]"), ["spry.yaml", "config.yaml"]))
    .description("print the JSON schema of spry.yaml, or of a config.yaml, for editors")
    .action(async (file) => (await import("../commands/schema.ts")).printSchema(file));

  program
    .command("completion")
    .addArgument(suggesting(new Argument("[shell]"), ["bash", "zsh", "fish"]))
    .description(
      "print a script that completes commands: bash, zsh or fish (default: that of $SHELL)",
    )
    .action(async (shell) => (await import("../commands/completion.ts")).completion(shell));

  program
    .command("__complete [words...]", { hidden: true })
    .description("print what the last word of a command may become, for the scripts of completion")
    .option("--descriptions", "each with a tab and what it is")
    .action(async (words, options) =>
      (await import("../commands/complete.ts")).complete(words, options, program),
    );

  program
    .command("version")
    .description("print the version of this command, and of the cluster if one can be reached")
    .addOption(jsonOutput())
    .action(async (_options, command) =>
      (await import("../commands/version.ts")).printVersion(command.optsWithGlobals()),
    );
}
