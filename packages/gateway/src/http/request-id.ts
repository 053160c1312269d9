/** The id of a request, which its response, the Function's log and its span have in common: the client's `X-Request-Id`, or a new one. */
import { randomUUID } from "node:crypto";
import { type ClientRequest } from "./client-side.ts";

export const requestIdHeader = "x-request-id";

/** As the runtimes accept it (docs/runtime-contract.md 9.5): nothing that could break a line of a log. */
const valid = /^[\w.:+/=-]{1,128}$/;

export function requestIdOf({ headers }: Pick<ClientRequest, "headers">): string {
  const given = headers[requestIdHeader];
  return typeof given === "string" && valid.test(given) ? given : randomUUID();
}
