import { type FailedRequest } from "@spry/function";
import { type AttemptFailure } from "../attempt/attempt.ts";
import { isBroken } from "../attempt/retry.ts";
import { type Passage, type RequestDeps } from "../request/passage.ts";
import { tenantOf } from "../exposure/filters.ts";
import { clientAddress } from "./forwarded-headers.ts";
import { printable } from "./printable.ts";

/** One line when a request has ended: who, what, and with which result. */
export function logAccess({ log, clock }: RequestDeps, passage: Passage): void {
  const startedAt = clock.elapsed();
  const { response } = passage;
  response.once("close", () => {
    const ms = clock.elapsed() - startedAt;
    log.info({ ...whoAndWhat(passage), status: response.statusCode, ms }, "request");
  });
}

/** A request to the host of an APIRule that has not been let through, and why. */
export function logRefusal({ exposure }: RequestDeps, passage: Passage, status: number): void {
  const { exposed } = passage;
  if (!exposed || !exposure) return;
  const unreachable = exposed.rule?.authentication.kind === "jwt" && status === 401;
  const problems = unreachable ? issuerProblems(passage, exposure) : undefined;
  exposure.refusals.write({ ...whoAndWhat(passage), status, ...(problems ? { problems } : {}) });
}

/**
 * A request that a Pod had and that has failed for good: on a cluster the log of a process that was killed has no line about it.
 * `name`: as in `Function default/hello`; `pod`: its address.
 */
export function logFailure(
  { log, failures, settings }: RequestDeps,
  passage: Passage,
  name: string,
  failure: AttemptFailure,
  pod: string | undefined,
): void {
  const { requestId } = passage;
  if (!failure.wasSent)
    return log.debug({ destination: name, requestId, error: failure.message }, "request failed");
  const { method, path } = whoAndWhat(passage);
  const cause = causeOf(failure, settings);
  failures.write({
    requestId,
    method,
    path,
    destination: name,
    pod,
    cause,
  } satisfies FailedRequest);
}

function causeOf(failure: AttemptFailure, settings: RequestDeps["settings"]): string {
  const limitMs =
    failure.limitMs ??
    (failure.code === "UND_ERR_HEADERS_TIMEOUT" ? settings.upstreamTimeoutMs : undefined);
  if (limitMs !== undefined) return `it exceeded its time limit (${limitMs / 1000} s)`;
  if (!isBroken(failure)) return printable(failure.message);
  return failure.hasResponded
    ? "the connection ended before the response was complete"
    : "the connection ended before there was a response";
}

/** Without the query, which may be a token, and without what a terminal would act on. */
function whoAndWhat({ request, host, path, requestId, exposed }: Passage) {
  const { method, socket } = request;
  const query = path.indexOf("?");
  return {
    client: clientAddress(socket),
    requestId,
    method,
    host: printable(host.slice(0, maxLogged)),
    path: printable((query < 0 ? path : path.slice(0, query)).slice(0, maxLogged)),
    ...(exposed && {
      apiRule: exposed.host.apiRule,
      ...(exposed.caller !== undefined && { caller: printable(exposed.caller) }),
      ...(exposed.reason !== undefined && { reason: printable(exposed.reason) }),
    }),
  };
}

/** Which of the rule's issuers cannot be reached, and why. */
function issuerProblems(
  { exposed }: Passage,
  { checks }: NonNullable<RequestDeps["exposure"]>,
): string[] | undefined {
  const authentication = exposed?.rule?.authentication;
  if (authentication?.kind !== "jwt") return undefined;
  const tenant = exposed ? tenantOf(exposed) : "";
  const found = authentication.authentications.flatMap(
    ({ jwksUri }) => checks.keys.problem({ uri: jwksUri, tenant }) ?? [],
  );
  return found.length > 0 ? found : undefined;
}

const maxLogged = 500;
