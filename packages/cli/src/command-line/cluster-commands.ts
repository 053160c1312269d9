/** Commands about Spry on a cluster. */
import { type Command, Option } from "commander";
import { collect, seconds } from "./values.ts";

export function addClusterCommands(program: Command): void {
  program
    .command("install")
    .description("install Spry on a Kubernetes cluster, or bring an installation up to date")
    .option(
      "-f, --values <file>",
      "images, registry, ... as for the Helm chart (repeatable)",
      collect,
      [],
    )
    .option(
      "--registry-ca <file>",
      "certificate of the private authority of registries, for builds and the controller",
    )
    .option("--dry-run", "print the objects and apply nothing")
    .option("--no-wait", "return as soon as the objects are stored")
    .option("--timeout <seconds>", "how long to wait until everything is ready", seconds, 300)
    .action(async (options, command) =>
      (await import("../commands/install.ts")).install({
        ...command.optsWithGlobals(),
        ...options,
      }),
    );

  program
    .command("uninstall")
    .description("remove Spry from a cluster; refused while Functions exist")
    .addOption(
      new Option("--functions <what>", "what to do with Functions").choices(["keep", "delete"]),
    )
    .option("--timeout <seconds>", "how long to wait until everything is deleted", seconds, 300)
    .action(async (options, command) =>
      (await import("../commands/uninstall.ts")).uninstall({
        ...command.optsWithGlobals(),
        ...options,
      }),
    );
}
