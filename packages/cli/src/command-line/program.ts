/** The `spry` command: all commands and options. The code of a command is loaded only when that command is run. */
import { Command, Option } from "commander";
import { spryCommand, startCommand } from "../shown-command.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { version } from "../version.ts";
import { addClusterCommands } from "./cluster-commands.ts";
import { addConfigurationCommands } from "./configuration-commands.ts";
import { addDirectoryCommands } from "./directory-commands.ts";
import { addEventCommands } from "./event-commands.ts";
import { readFunctionNames } from "./function-name.ts";
import { addFunctionCommands } from "./function-commands.ts";
import { addOriginalCommands } from "./original-commands.ts";
import { addOtherCommands } from "./other-commands.ts";
import { addPlatformCommands } from "./platform-commands.ts";

/** Of what follows `error: `. */
const errorIndent = 7;

export function createProgram(): Command {
  const program = new Command("spry")
    // Ends the process by itself otherwise, before it is known that the text could not be written.
    .exitOverride()
    .configureOutput({
      // As `printError` has it.
      outputError: (text, write) => {
        const [sentence = "", ...rest] = text.trimEnd().split("\n");
        const lines = rest.map((line) =>
          line.replace(/^\(Did you mean (.*)\)$/, "did you mean $1"),
        );
        const columns = columnsOf(process.stderr);
        write(`${wrapped(sentence, columns, errorIndent)}\n`);
        for (const line of lines) write(`${" ".repeat(errorIndent)}${line}\n`);
      },
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
  addDirectoryCommands(program.commandsGroup("A directory:"));
  addFunctionCommands(program.commandsGroup("Functions:"));
  addOriginalCommands(program);
  addConfigurationCommands(program.commandsGroup("Configuration and public hosts:"));
  addEventCommands(program.commandsGroup("Events, asynchronous calls and schedules:"));
  addPlatformCommands(program.commandsGroup("The platform on this machine:"));
  addClusterCommands(program.commandsGroup("Clusters:"));
  addOtherCommands(program.commandsGroup("Help:"));
  const start = [
    [spryCommand("init hello"), "a new directory; then, with its name:"],
    [spryCommand("dev hello"), "run it here"],
    [spryCommand("deploy hello"), `make it a Function (${startCommand()} starts a platform)`],
  ] as const;
  program.addHelpText(
    "after",
    `\nStart with:\n${start.map(([command, what]) => `  ${command.padEnd(23)} ${what}`).join("\n")}`,
  );
  readFunctionNames(program);
  acceptWait(program);
  nameHelp(program, spryCommand("").trim());
  return program;
}

/** After a mistake, the help of the command in which it is. */
function nameHelp(command: Command, name: string): void {
  const parameters = command.registeredArguments.map((each) =>
    each.required ? `<${each.name()}>` : `[${each.name()}]`,
  );
  const isOptional = command.registeredArguments.every((each) => !each.required);
  const use = isOptional ? "" : `use ${[name, ...parameters].join(" ")}; `;
  command.showHelpAfterError(`${" ".repeat(errorIndent)}${use}see ${name} --help`);
  for (const each of command.commands) nameHelp(each, `${name} ${each.name()}`);
}

/** Commands that wait unless they are asked not to accept that it is said. */
function acceptWait(command: Command): void {
  if (command.options.some(({ long }) => long === "--no-wait"))
    command.addOption(new Option("--wait", "accepted: it is the default").default(true).hideHelp());
  for (const each of command.commands) acceptWait(each);
}
