/** A registry's refusal, or that it could not be reached (status 0). The message never holds a secret. */
export class RegistryError extends Error {
  override readonly name = "RegistryError";
  /** Host and port of the URL that was requested; "" when it does not matter. */
  readonly host: string;
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  /** The distribution specification's code, such as `MANIFEST_UNKNOWN`; "" when there was none. */
  readonly code: string;
  /** How long the registry asked to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    message: string,
    options: ErrorOptions & {
      status: number;
      host?: string;
      code?: string;
      retryAfterMs?: number | undefined;
    },
  ) {
    super(message, options);
    this.host = options.host ?? "";
    this.status = options.status;
    this.code = options.code ?? "";
    this.retryAfterMs = options.retryAfterMs;
  }

  /** Worth trying again: no answer, a server's trouble, or too many requests. */
  get temporary(): boolean {
    return this.status === 0 || this.status === 429 || (this.status >= 500 && this.status !== 501);
  }
}

export function isNotFound(error: unknown): boolean {
  return error instanceof RegistryError && error.status === 404;
}
