import { type FunctionRequest } from "./function-request.ts";
import { type Settings } from "./settings.ts";

/** The second argument of a handler; `signal` is aborted when the client no longer waits for the response. */
export class Context {
  readonly "function-name": string;
  readonly runtime: string;
  readonly namespace: string;
  /** In seconds. */
  readonly timeout: number;
  /** In MB. */
  readonly "body-size-limit": number;
  readonly #request: FunctionRequest;

  constructor(settings: Settings, request: FunctionRequest) {
    this["function-name"] = settings.functionName;
    this.runtime = settings.runtime;
    this.namespace = settings.namespace;
    this.timeout = settings.timeoutSeconds;
    this["body-size-limit"] = settings.bodyLimitMb;
    this.#request = request;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }
}
