import { StatusError } from "@spry/kube";
import { protobufMediaType } from "../protobuf/protobuf.ts";
import { type HttpRequest } from "./message.ts";

/** In which form objects are wanted: as they are, as rows for people, or their metadata only. */
export type Form = "object" | "table" | "partial";

export interface Accepted {
  form: Form;
  /** Version of meta.k8s.io for tables and partial objects. */
  version: string;
  protobuf: boolean;
}

/** The media types in `Accept`, as they come. */
export function acceptedParts(
  request: HttpRequest,
): { mediaType: string; parameters: Map<string, string> }[] {
  const header = request.headers.get("accept") ?? "*/*";
  return header
    .slice(0, 2048)
    .split(",")
    .map((part) => {
      const [mediaType = "", ...rest] = part.split(";").map((each) => each.trim());
      const parameters = new Map(rest.map((each) => each.split("=", 2) as [string, string]));
      return { mediaType, parameters };
    });
}

export const yamlMediaType = "application/yaml";
/** YAML is JSON to handlers: it is written at the end (`preferred-encoding.ts`). */
const anyJson = ["application/json", yamlMediaType, "*/*", "application/*", ""];

/**
 * Reads `Accept`; throws a `StatusError` 406 when nothing of it can be served. Tables are JSON always,
 * and so are objects of custom resources.
 */
export function acceptedForm(
  request: HttpRequest,
  { custom }: { custom?: unknown },
  name = "",
): Accepted {
  let isKnown = false;
  for (const { mediaType, parameters } of acceptedParts(request)) {
    const protobuf = mediaType === protobufMediaType;
    if (!protobuf && !anyJson.includes(mediaType)) continue;
    isKnown = true;
    const as = parameters.get("as");
    const version = parameters.get("v") ?? "v1";
    if (protobuf && (as === undefined ? custom : as === "Table" || version !== "v1")) continue;
    if (as === undefined) return { form: "object", version: "v1", protobuf };
    if (parameters.get("g") !== "meta.k8s.io" || !["v1", "v1beta1"].includes(version)) continue;
    if (as === "Table") return { form: "table", version, protobuf };
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") {
      return { form: "partial", version, protobuf };
    }
  }
  const types = ["application/json", yamlMediaType, ...(custom ? [] : [protobufMediaType])];
  if (isKnown) {
    const message = `only the following media types are accepted: ${types.join(", ")}`;
    throw new StatusError({ code: 406, message });
  }
  const isCollection = request.method === "GET" && !name;
  const streamed = [types[0], ...(custom ? [] : [protobufMediaType])].map(
    (each) => `${each};stream=watch`,
  );
  throw notAcceptable(isCollection ? [...types, ...streamed] : types);
}

export function notAcceptable(types: string[]): StatusError {
  const message = `406: Not Acceptable\n\nAvailable representations: ${types.join(", ")}`;
  return new StatusError({ code: 406, message, details: {} });
}

/** The media type of a request's body; JSON when it says nothing. */
export function mediaTypeOf(request: HttpRequest): string {
  const header = request.headers.get("content-type") ?? "application/json";
  return (header.split(";")[0] ?? "").trim().toLowerCase();
}
