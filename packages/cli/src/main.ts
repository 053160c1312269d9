/** Program: the `spry` command. */
import { createProgram } from "./command-line/program.ts";
import { endWithLauncher } from "./launcher.ts";
import { UserError } from "./user-error.ts";

endWithLauncher();

try {
  await createProgram().parseAsync();
} catch (error) {
  await explain(error);
  // Handles that a failed command has left open must not keep the process alive.
  process.exit(1);
}

async function explain(error: unknown): Promise<void> {
  // Not needed for help.
  const { messageOf, StatusError } = await import("@spry/kube");
  if (error instanceof UserError) {
    console.error(`error: ${messageOf(error)}`);
    if (error.wayOut) console.error(`       ${error.wayOut}`);
  } else if (error instanceof StatusError) {
    console.error(`error: ${error.message}`);
  } else {
    // A bug, or something nobody thought of: everything that helps to find it.
    console.error(error);
  }
}
