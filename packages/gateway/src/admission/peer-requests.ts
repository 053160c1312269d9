import { type ObjectKey } from "@spry/kube";
import { type ErrorResponse } from "../http/error-response.ts";
import { type Outcome } from "../request/filters.ts";
import { type Passage, type RequestDeps } from "../request/passage.ts";

/** Which Revision a gateway wants a place of, and that it may; headers of these names are never a client's (`forwarded-headers.ts`). */
const revisionHeader = "knative-serving-admission";
const tokenHeader = "knative-serving-admission-token";
/** Of a response to a request that has not been handled, and may be sent elsewhere. */
export const refusedHeader = "knative-serving-admission-refused";

/** For a request to the gateway that admits, names and values by turns. */
export function peerHeaders(revision: ObjectKey, token: string): string[] {
  return [revisionHeader, revision, tokenHeader, token];
}

/** The Revision that another gateway wants a place of; undefined for any other request. */
export function wantedRevision(
  { headers }: Passage["request"],
  { admission }: RequestDeps,
): ObjectKey | undefined {
  const revision = headers[revisionHeader];
  const isAllowed = admission?.isToken(headers[tokenHeader]) === true;
  return isAllowed && typeof revision === "string" ? revision : undefined;
}

const notHere: ErrorResponse = {
  status: 503,
  reason: "AdmittedElsewhere",
  message: "another gateway admits requests to this Revision",
  headers: { [refusedHeader]: "true" },
};

/** A filter: its destination, as long as this gateway admits to it. */
export function admittedHere(passage: Passage, { admission, routes }: RequestDeps): Outcome {
  const destination = passage.peerRevision && routes.revision(passage.peerRevision);
  if (!destination || admission?.place !== "own") return notHere;
  passage.destination = destination;
  return undefined;
}
