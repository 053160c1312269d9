import { expect, test } from "vitest";
import { type FailedAttempt, mayRetry } from "./retry.ts";

/** A POST whose connection broke at once. */
const stale: FailedAttempt = {
  code: "UND_ERR_SOCKET",
  method: "POST",
  wasSent: true,
  sinceSentMs: 1,
  hasResponded: false,
  isRetired: false,
  isBodyReplayable: true,
  earlierBreaks: 0,
};

test.each<[string, Partial<FailedAttempt>, boolean]>([
  ["whose connection was refused", { wasSent: false, code: "ECONNREFUSED" }, true],
  ["whose connection took too long", { wasSent: false, code: "UND_ERR_CONNECT_TIMEOUT" }, true],
  ["refused again and again", { wasSent: false, code: "ECONNREFUSED", earlierBreaks: 9 }, true],
  ["refused, its body half sent and forgotten", { wasSent: false, isBodyReplayable: false }, false],
  ["that cannot be sent", { wasSent: false, code: "UND_ERR_INVALID_ARG" }, false],
  ["that may have done something", {}, false],
  ["that may be done twice", { method: "PUT" }, true],
  ["that may be done twice, reset by the system", { method: "GET", code: "ECONNRESET" }, true],
  ["to a Pod being removed", { isRetired: true }, true],
  ["that a removed Pod worked on for long", { isRetired: true, sinceSentMs: 1_000 }, false],
  ["that broke before", { method: "GET", earlierBreaks: 1 }, false],
  ["responded to in part", { method: "GET", hasResponded: true }, false],
  ["that timed out", { method: "GET", code: "UND_ERR_HEADERS_TIMEOUT" }, false],
  ["responded to with nonsense", { method: "GET", code: "HPE_INVALID_CONSTANT" }, false],
])("a request %s may be sent again: %j %s", (_, attempt, expected) => {
  expect(mayRetry({ ...stale, ...attempt })).toBe(expected);
});
