import { randomUUID } from "node:crypto";
import { memberText } from "@spry/kube";
import { bounds } from "../bounds.ts";
import { checked, type CloudEvent, NotAnEventError } from "./cloud-event.ts";
import { textOf } from "./http.ts";

/** Why a legacy event is refused, in the original's form (kyma-project/eventing-publisher-proxy, `pkg/legacy`). */
export interface LegacyError {
  status: number;
  type?: string;
  message: string;
  moreInfo: string;
  details: { field: string; type: string; message: string; moreInfo: string }[];
}

const eventVersion = /^[a-zA-Z0-9]+$/;
const eventId = /^[a-fA-F0-9]{8}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{4}-[a-fA-F0-9]{12}$/;
const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/;

/** `/{application}/v1/events`; undefined for other paths. */
export function legacyApplication(path: string): string | undefined {
  const [, application] = /^\/([^/]{1,253})\/v1\/events$/.exec(path) ?? [];
  return application === undefined ? undefined : decodeURIComponent(application);
}

/** The event of a legacy request, whose source is the application. */
export function legacyEvent(application: string, body: Buffer): CloudEvent | LegacyError {
  if (body.length === 0) return badPayload("Bad payload syntax");
  let written: string;
  let request: Record<string, unknown>;
  try {
    written = textOf(body);
    request = JSON.parse(written) as Record<string, unknown>;
    if (typeof request !== "object" || request === null) return badPayload("not a JSON object");
  } catch (error) {
    return badPayload(error instanceof NotAnEventError ? error.message : "not valid JSON");
  }
  const text = (name: string) => (typeof request[name] === "string" ? request[name] : "");
  const [type, version, time, id] = [
    text("event-type"),
    text("event-type-version"),
    text("event-time"),
    text("event-id"),
  ];
  const { data } = request;
  if (type === "") return missing("event-type");
  if (version === "") return missing("event-type-version");
  if (!eventVersion.test(version)) return invalid("event-type-version");
  if (time === "") return missing("event-time");
  if (!rfc3339.test(time) || Number.isNaN(Date.parse(time))) return invalid("event-time");
  if (id !== "" && !eventId.test(id)) return invalid("event-id");
  if (data === undefined || data === null || data === "") return missing("data");
  const attributes = {
    specversion: "1.0",
    id: id === "" ? randomUUID() : id,
    source: application,
    type: `${type}.${version}`,
    time,
    eventtypeversion: version,
    datacontenttype: "application/json",
  };
  try {
    return checked({ attributes, data: Buffer.from(memberText(written, "data") ?? "") });
  } catch (error) {
    if (error instanceof NotAnEventError) return badPayload(error.message);
    throw error;
  }
}

const badPayload = (moreInfo: string): LegacyError => ({
  status: 400,
  type: "bad_payload",
  message: "Bad payload syntax",
  moreInfo,
  details: [],
});

export const tooLarge: LegacyError = {
  status: 413,
  type: "request_body_too_large",
  message: "Request body too large",
  moreInfo: `at most ${bounds.eventBytes} bytes are allowed`,
  details: [],
};

const violation = (type: string, message: string, field: string): LegacyError => ({
  status: 400,
  type: "validation_violation",
  message,
  moreInfo: "",
  details: [{ field, type, message, moreInfo: "" }],
});
const missing = (field: string) => violation("missing_field", "Missing field", field);
const invalid = (field: string) => violation("invalid_field", "Invalid field", field);
