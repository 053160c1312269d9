/** The `spry` command: all commands and options. The code of a command is loaded only when that command is run. */
import { Command, Option } from "commander";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { version } from "../version.ts";
import { addClusterCommands } from "./cluster-commands.ts";
import { addConfigurationCommands } from "./configuration-commands.ts";
import { addDirectoryCommands } from "./directory-commands.ts";
import { addEventCommands } from "./event-commands.ts";
import { addFunctionCommands } from "./function-commands.ts";
import { addOtherCommands } from "./other-commands.ts";
import { addPlatformCommands } from "./platform-commands.ts";

/** Of what follows `error: `. */
const errorIndent = 7;

export function createProgram(): Command {
  const program = new Command("spry")
    .configureOutput({
      outputError: (text, write) => write(wrapped(text, columnsOf(process.stderr), errorIndent)),
    })
    .description("Functions on Kubernetes, or on one machine with no cluster")
    .version(version)
    .option(
      "--kubeconfig <file>",
      "which cluster to talk to (default: $KUBECONFIG, .spry/kubeconfig, ~/.kube/config)",
    )
    .option("-n, --namespace <name>", "namespace (default: the kubeconfig's, or default)")
    // Of the original, whose command asks and draws; this one does neither without a terminal.
    .addOption(new Option("--ci", "accepted without an effect").hideHelp())
    .addOption(new Option("--non-interactive", "accepted without an effect").hideHelp())
    .addOption(new Option("-v, --verbose", "accepted without an effect").hideHelp());
  addDirectoryCommands(program);
  addFunctionCommands(program);
  addConfigurationCommands(program);
  addEventCommands(program);
  addPlatformCommands(program);
  addClusterCommands(program);
  addOtherCommands(program);
  nameHelp(program, "spry");
  return program;
}

/** After a mistake, the help of the command in which it is. */
function nameHelp(command: Command, name: string): void {
  command.showHelpAfterError(`(see ${name} --help)`);
  for (const each of command.commands) nameHelp(each, `${name} ${each.name()}`);
}
