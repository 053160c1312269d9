/** Commands about the command itself, and about the kind Function. */
import { type Command } from "commander";

export function addOtherCommands(program: Command): void {
  program
    .command("explain [field]")
    .description("show what a field of a Function means: spec.source")
    .action(async (field) => (await import("../commands/explain.ts")).explain(field));

  program
    .command("completion <shell>")
    .description("print a script that completes commands: bash, zsh or fish")
    .action(async (shell) =>
      (await import("../commands/completion.ts")).completion(shell, program),
    );

  program
    .command("version")
    .description("print the version of this command, and of the cluster if one can be reached")
    .option("-o, --output <format>", "json")
    .action(async (_options, command) =>
      (await import("../commands/version.ts")).printVersion(command.optsWithGlobals()),
    );
}
