import { StatusError } from "@spry/kube";
import { badRequest, invalidOptions, plainFailure } from "../errors.ts";
import { scanJson } from "../http/json-scanner.ts";
import { storedBytes } from "../schema/go-values.ts";

/** `meta/v1 ListOptions` of a list or watch, apart from its selectors. */
export interface ListOptions {
  /** The revision that the client names; undefined when it names none. */
  revision: number | undefined;
  match: "" | "Exact" | "NotOlderThan";
  limit: number;
  position: Position | undefined;
}

/** Where a page begins: after a key, in the state of a revision (-1: the latest). */
export interface Position {
  revision: number;
  after: string;
}

/** Reads what a list may say. Throws a `StatusError` in the words of Kubernetes. */
export function listOptionsOf(query: URLSearchParams): ListOptions {
  const limit = integerOf(query, "limit") ?? 0;
  integerOf(query, "timeoutSeconds");
  const version = query.get("resourceVersion") ?? "";
  const match = query.get("resourceVersionMatch") ?? "";
  const token = query.get("continue") ?? "";
  checkListOptions(version, match, token, query.has("sendInitialEvents"));
  if (token && version && version !== "0") {
    throw badRequest("specifying resource version is not allowed when using continue");
  }
  const position = token ? positionOf(token) : undefined;
  const problem = versionProblem(version);
  if (problem) throw badRequest(`invalid resource version: ${problem}`);
  return {
    revision: version ? Number(version) : undefined,
    match: match as ListOptions["match"],
    limit,
    position,
  };
}

export interface WatchOptions {
  /** 0 stands for any. */
  revision: number;
  /** `?sendInitialEvents=`; undefined when nothing is said. */
  initialEvents: boolean | undefined;
  bookmarks: boolean;
  timeoutSeconds: number;
}

/** Reads what a watch may say. */
export function watchOptionsOf(query: URLSearchParams): WatchOptions {
  const timeoutSeconds = integerOf(query, "timeoutSeconds") ?? 0;
  const match = query.get("resourceVersionMatch") ?? "";
  const initialEvents = query.has("sendInitialEvents")
    ? isTrue(query, "sendInitialEvents")
    : undefined;
  checkWatchOptions(match, query.has("continue"), initialEvents);
  const version = query.get("resourceVersion") ?? "";
  const problem = versionProblem(version);
  if (problem) throw plainFailure(problem);
  return {
    revision: Number(version || 0),
    initialEvents,
    bookmarks: isTrue(query, "allowWatchBookmarks"),
    timeoutSeconds,
  };
}

/** Whether an option is set: everything but `false` and `0` says so, also nothing (`?watch`). */
export function isTrue(query: URLSearchParams, name: string): boolean {
  const value = query.get(name);
  return value !== null && value !== "0" && value.toLowerCase() !== "false";
}

/** A whole number; undefined when nothing is said. */
export function integerOf(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === "") return undefined;
  if (!/^[+-]?\d+$/.test(text)) throw badRequest(parsing("ParseInt", text, "invalid syntax"));
  const value = Number(text);
  if (!Number.isSafeInteger(value)) {
    throw badRequest(parsing("ParseInt", text, "value out of range"));
  }
  return value;
}

/** The revision of `?resourceVersion=` for a single object; 0 when none is named. */
export function leastRevisionOf(query: URLSearchParams): number {
  const version = query.get("resourceVersion") ?? "";
  const problem = versionProblem(version);
  if (problem) throw plainFailure(problem);
  return Number(version || 0);
}

/** What the client has seen is not here yet; it is to ask again in a second. */
export function tooLargeVersion(asked: number, current: number): StatusError {
  return new StatusError({
    code: 504,
    message: `Timeout: Too large resource version: ${asked}, current: ${current}`,
    details: {
      causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }],
      retryAfterSeconds: 1,
    },
  });
}

function versionProblem(version: string): string | undefined {
  const cause =
    version === "" || /^\d+$/.test(version)
      ? Number(version) > Number.MAX_SAFE_INTEGER && "value out of range"
      : "invalid syntax";
  if (!cause) return undefined;
  const shown = JSON.stringify(version);
  return `resourceVersion: Invalid value: ${shown}: ${parsing("ParseUint", version, cause)}`;
}

function parsing(call: string, text: string, cause: string): string {
  return `strconv.${call}: parsing ${JSON.stringify(text.slice(0, 100))}: ${cause}`;
}

const atLeast = "NotOlderThan";

function checkListOptions(version: string, match: string, token: string, events: boolean): void {
  const forbidden = [
    [match && !version, "resourceVersionMatch is forbidden unless resourceVersion is provided"],
    [match && token, "resourceVersionMatch is forbidden when continue is provided"],
  ] as const;
  const isKnown = ["", "Exact", atLeast].includes(match);
  const isAnyExact = match === "Exact" && version === "0";
  if (!forbidden.some(([found]) => found) && isKnown && !isAnyExact && !events) return;
  throw invalidOptions("ListOptions", (errors) => {
    for (const [found, detail] of forbidden) {
      if (found) errors.forbidden("resourceVersionMatch", detail);
    }
    if (!isKnown) errors.unsupported("resourceVersionMatch", match, ["Exact", atLeast, ""]);
    if (isAnyExact) {
      const detail = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"';
      errors.forbidden("resourceVersionMatch", detail);
    }
    if (events) errors.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
  });
}

function checkWatchOptions(
  match: string,
  continues: boolean,
  initialEvents: boolean | undefined,
): void {
  const field = "resourceVersionMatch";
  const needsMatch = initialEvents !== undefined && match !== atLeast;
  if (!needsMatch && (match === "" || (match === atLeast && initialEvents !== undefined))) return;
  throw invalidOptions("ListOptions", (errors) => {
    if (needsMatch)
      errors.forbidden(field, `sendInitialEvents requires setting ${field} to ${atLeast}`);
    if (match && initialEvents === undefined) {
      errors.forbidden(
        field,
        `${field} is forbidden for watch unless sendInitialEvents is provided`,
      );
    }
    if (match && match !== atLeast) errors.unsupported(field, match, [atLeast]);
    if (match && continues) {
      errors.forbidden(field, `${field} is forbidden when continue is provided`);
    }
  });
}

const invalidKey = "continue key is not valid";

function positionOf(token: string): Position {
  try {
    return decodedPosition(token);
  } catch (cause) {
    throw badRequest(`invalid continue token: ${(cause as Error).message}`, { cause });
  }
}

function decodedPosition(token: string): Position {
  const standard = token.replaceAll("-", "+").replaceAll("_", "/");
  try {
    storedBytes(standard.padEnd(Math.ceil(standard.length / 4) * 4, "="));
  } catch (cause) {
    throw new Error(`${invalidKey}: ${(cause as Error).message}`, { cause });
  }
  const text = Buffer.from(token, "base64url").toString("latin1");
  const { problem } = scanJson(text);
  if (problem) throw new Error(`${invalidKey}: ${problem}`);
  const { v, rv, start } = (JSON.parse(Buffer.from(token, "base64url").toString()) ?? {}) as {
    v?: unknown;
    rv?: unknown;
    start?: unknown;
  };
  if (v !== "meta.k8s.io/v1") {
    throw new Error(
      `${invalidKey}: server does not recognize this encoded version ${String(v ?? "")}`,
    );
  }
  if (!Number.isSafeInteger(rv) || rv === 0) {
    throw new Error(
      `${invalidKey}: incorrect encoded start resourceVersion (version meta.k8s.io/v1)`,
    );
  }
  if (typeof start !== "string" || start === "") {
    throw new Error(`${invalidKey}: encoded start key empty (version meta.k8s.io/v1)`);
  }
  if (/(?:^|\/)\.{0,2}(?:\/|$)/.test(start.replace(/^\//, ""))) {
    throw new Error(`${invalidKey}: ${start}`);
  }
  return { revision: rv as number, after: start };
}

/** The token of the page after `key`; a revision of -1 continues in whatever state there is then. */
export function continueToken(revision: number, key: string): string {
  const token = { v: "meta.k8s.io/v1", rv: revision, start: key };
  return Buffer.from(JSON.stringify(token)).toString("base64url");
}
