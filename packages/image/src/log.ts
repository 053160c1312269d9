/** The part of a structured logger that this room needs; pino's loggers fit as they are. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export const silentLogger: Logger = { debug() {}, info() {}, error() {} };
