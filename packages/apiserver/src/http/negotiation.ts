import { StatusError } from "@spry/kube";

/** In which form objects are wanted: as they are, as rows for people, or their metadata only. */
export type Form = "object" | "table" | "partial";

export interface Accepted {
  form: Form;
  /** Version of meta.k8s.io for tables and partial objects. */
  version: string;
}

/** Reads `Accept`; throws a `StatusError` 406 when nothing of it can be served. */
export function acceptedForm(request: Request): Accepted {
  const header = request.headers.get("accept") ?? "*/*";
  for (const part of header.slice(0, 2048).split(",")) {
    const [mediaType = "", ...rest] = part.split(";").map((each) => each.trim());
    if (!["application/json", "*/*", "application/*", ""].includes(mediaType)) continue;
    const parameters = new Map(rest.map((each) => each.split("=", 2) as [string, string]));
    const as = parameters.get("as");
    if (as === undefined) return { form: "object", version: "v1" };
    const version = parameters.get("v") ?? "v1";
    if (parameters.get("g") !== "meta.k8s.io" || !["v1", "v1beta1"].includes(version)) continue;
    if (as === "Table") return { form: "table", version };
    if (as === "PartialObjectMetadata" || as === "PartialObjectMetadataList") {
      return { form: "partial", version };
    }
  }
  throw new StatusError({
    code: 406,
    message: "only the following media types are accepted: application/json",
  });
}

/** The media type of a request's body; JSON when it says nothing. */
export function mediaTypeOf(request: Request): string {
  const header = request.headers.get("content-type") ?? "application/json";
  return (header.split(";")[0] ?? "").trim().toLowerCase();
}
