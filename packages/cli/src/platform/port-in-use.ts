import { startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

/**
 * Listens at a port for `what`. Turns "port in use" into a sentence that names the port, the program that needs it and the
 * flag that changes it.
 */
export async function occupying<T>(
  what: string,
  port: number,
  flag: string,
  listen: (port: number) => Promise<T>,
): Promise<T> {
  try {
    return await listen(port);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EADDRINUSE" || /EADDRINUSE/.test(String(error))) {
      throw new UserError(
        `port ${port} for the ${what} is in use by another program`,
        `stop that program, or choose another port: ${startCommand(`${flag} ${port + 1}`)} (0 takes any free one)`,
      );
    }
    if (code === "EACCES") {
      throw new UserError(
        `port ${port} for the ${what} needs privileges`,
        `choose one above 1023 with ${flag}`,
      );
    }
    throw error;
  }
}
