import { type OutgoingHttpHeaders } from "node:http";

/** Codes of the OCI distribution specification 1.1, "Error Codes", with the status each goes with. */
const statusOfCode = {
  BLOB_UNKNOWN: 404,
  BLOB_UPLOAD_INVALID: 400,
  BLOB_UPLOAD_UNKNOWN: 404,
  DENIED: 403,
  DIGEST_INVALID: 400,
  MANIFEST_BLOB_UNKNOWN: 404,
  MANIFEST_INVALID: 400,
  MANIFEST_UNKNOWN: 404,
  NAME_INVALID: 400,
  NAME_UNKNOWN: 404,
  SIZE_INVALID: 400,
  TAG_INVALID: 400,
  TOOMANYREQUESTS: 429,
  UNAUTHORIZED: 401,
  UNSUPPORTED: 405,
} as const;

export type FailureCode = keyof typeof statusOfCode;

/** A request that the registry refuses; anything else that is thrown is our own trouble, a 500. */
export class RegistryFailure extends Error {
  readonly code: FailureCode;
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;

  constructor(
    code: FailureCode,
    message: string,
    options: { status?: number; headers?: OutgoingHttpHeaders } = {},
  ) {
    super(message);
    this.code = code;
    this.status = options.status ?? statusOfCode[code];
    this.headers = options.headers ?? {};
  }

  toJSON(): object {
    return { errors: [{ code: this.code, message: this.message, detail: null }] };
  }
}
