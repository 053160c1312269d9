/** Program: the `spry` command. */
import { CommanderError } from "commander";
import { withoutUnlikely } from "./command-line/likely-names.ts";
import { commandIn, refuseOtherNames, typedCommand } from "./command-line/other-names.ts";
import { withNameHere } from "./command-line/name-here.ts";
import { createProgram } from "./command-line/program.ts";
import { isConnectionLost } from "./connection-lost.ts";
import { guardOutput } from "./guarded-output.ts";
import { printError } from "./print-error.ts";
import { endWithLauncher } from "./launcher.ts";
import { UserError } from "./user-error.ts";

endWithLauncher();
// What runs until it is ended has other work than its output.
const isLasting = /^(?:up|dev|run|test|debug|dashboard)$/.test(commandIn(process.argv.slice(2)));
guardOutput(isLasting);

try {
  const program = createProgram();
  const args = typedCommand(process.argv.slice(2), program);
  refuseOtherNames(args);
  withoutUnlikely(args, program);
  await program.parseAsync(await withNameHere(args, program, createProgram), { from: "user" });
  // Where output cannot be written, that is reported now.
  await new Promise(setImmediate);
  // To take everything down in good order takes longer than to end.
  if (!isLasting && isWritten(process.stdout) && isWritten(process.stderr)) process.exit();
} catch (error) {
  // A text of help, or a mistake in the command line: it has been printed.
  if (error instanceof CommanderError) process.exitCode = error.exitCode;
  else {
    await explain(error);
    // Handles that a failed command has left open must not keep the process alive.
    process.exit(1);
  }
}

function isWritten({ writableLength, writableNeedDrain }: NodeJS.WriteStream): boolean {
  return writableLength === 0 && !writableNeedDrain;
}

async function explain(error: unknown): Promise<void> {
  // Not needed for help.
  const { limitReached, messageOf, StatusError } = await import("@spry/kube");
  const { systemFault } = await import("./system-fault.ts");
  const fault = systemFault(error);
  const limit = [error, (error as Error).cause].map(limitReached).find(Boolean);
  if (error instanceof UserError) {
    printError(messageOf(error), error.wayOut);
  } else if (error instanceof StatusError) {
    printError(error.message);
  } else if (isConnectionLost(error)) {
    printError(
      "the connection to the API server ended in the middle of a response",
      "repeat the command; `spry status` shows whether the server can be reached",
    );
  } else if (limit !== undefined) {
    printError(messageOf(error), `${limit}: \`ulimit -a\` shows the limits of a shell`);
  } else if (fault) {
    printError(fault.message, fault.wayOut);
  } else {
    // A bug, or a case that was not considered: everything that helps to find it.
    console.error(error);
  }
}
