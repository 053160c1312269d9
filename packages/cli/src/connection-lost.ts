/** Whether a connection ended in the middle of a response: the server was killed, or something on the way cut it. */
export const isConnectionLost = (error: unknown): boolean =>
  error instanceof Error && (error as NodeJS.ErrnoException).code === "ECONNRESET";
