import { startCommand } from "../shown-command.ts";
import { UserError } from "../user-error.ts";
import { type OwnPorts } from "./own-ports.ts";

/** Also of a process that has said so. */
export const isAddressInUse = (error: unknown): boolean =>
  (error as NodeJS.ErrnoException).code === "EADDRINUSE" || /EADDRINUSE/.test(String(error));

/**
 * Listens at a port for `what`, which a Pod may have taken. Turns "port in use" into a sentence that names the port, the program that needs it and the
 * flag that changes it.
 */
export async function occupying<T>(
  what: string,
  port: number,
  flag: string,
  listen: (port: number) => Promise<T>,
  ports: OwnPorts,
): Promise<T> {
  try {
    return await ports.listen(port, listen);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (isAddressInUse(error)) {
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
