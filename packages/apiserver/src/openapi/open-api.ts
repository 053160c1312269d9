import { createHash } from "node:crypto";
import { StatusError } from "@spry/kube";
import { type AggregatedVersion } from "../aggregation/aggregated-version.ts";
import { unknownPath } from "../errors.ts";
import { type Catalog } from "../resources/catalog.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { builtin } from "../schema/schema.ts";
import { type HttpRequest, HttpResponse } from "../http/message.ts";
import { acceptedParts } from "../http/negotiation.ts";
import { pathsOf, schemasOf } from "./documents.ts";
import { encodeSwagger, swaggerProtobufType, swaggerProtobufTypes } from "./swagger-protobuf.ts";

const info = { title: "Kubernetes", version: builtin.release };
const prefix = "/openapi/v3/";
const jsonType = "application/json";

interface Document {
  body: string | Buffer<ArrayBuffer>;
  hash: string;
}

/** The schemas of what is served, for clients; made when asked for, kept until the catalog changes. */
export class OpenApi {
  readonly #catalog: Catalog;
  readonly #aggregated: () => AggregatedVersion[];
  #generation = -1;
  #documents = new Map<string, Document>();

  /** `aggregated`: what other servers serve; the index has it, and their documents are theirs. */
  constructor(catalog: Catalog, aggregated: () => AggregatedVersion[]) {
    this.#catalog = catalog;
    this.#aggregated = aggregated;
  }

  respond(request: HttpRequest, path: string): HttpResponse {
    const contentType = acceptedType(request, path);
    if (this.#generation !== this.#catalog.generation) {
      this.#documents.clear();
      this.#generation = this.#catalog.generation;
    }
    const { body, hash } = this.#document(path, contentType);
    const etag = `"${hash}"`;
    if (request.headers.get("if-none-match") === etag)
      return new HttpResponse(null, { status: 304 });
    return new HttpResponse(body, {
      headers: { "content-type": contentType, etag, vary: "Accept" },
    });
  }

  #document(path: string, contentType: string): Document {
    const key = `${contentType} ${path}`;
    let document = this.#documents.get(key);
    if (!document) {
      const made = this.#make(path);
      const body = contentType === jsonType ? JSON.stringify(made) : encodeSwagger(made);
      const hash = createHash("sha512").update(body).digest("hex").slice(0, 64).toUpperCase();
      document = { body, hash };
      this.#documents.set(key, document);
    }
    return document;
  }

  #make(path: string): object {
    if (path === "/openapi/v2") {
      const all = this.#all();
      const definitions = schemasOf(all, "#/definitions/");
      return { swagger: "2.0", info, paths: pathsOf(all, 2, this.#catalog.reviews), definitions };
    }
    if (path === "/openapi/v3") return { paths: this.#index() };
    const types = this.#types().get(path.slice(prefix.length));
    if (!types) throw unknownPath();
    const schemas = schemasOf(types, "#/components/schemas/");
    const paths = pathsOf(types, 3, this.#catalog.reviews);
    return { openapi: "3.0.0", info, paths, components: { schemas } };
  }

  /** Hashes only show that a document may have changed: those of definitions come from their objects. */
  #index(): object {
    const entries = [...this.#types()].map(([key, types]) => {
      const state = types.map(
        (type) => `${type.plural} ${type.custom?.crdRevision ?? builtin.release}`,
      );
      const hash = createHash("sha256").update(state.join("\n")).digest("hex").toUpperCase();
      return [key, { serverRelativeURL: `${prefix}${key}?hash=${hash}` }];
    });
    const others = this.#aggregated().flatMap(({ group, version, openApiHash }) => {
      const key = `apis/${group}/${version}`;
      const url = `${prefix}${key}?hash=${openApiHash}`;
      return openApiHash === undefined ? [] : [[key, { serverRelativeURL: url }]];
    });
    return Object.fromEntries([...entries, ...others]) as object;
  }

  #all(): ResourceType[] {
    return [...this.#catalog.all(), ...this.#catalog.reviews];
  }

  #types(): Map<string, ResourceType[]> {
    return Map.groupBy(this.#all(), (type) =>
      type.group ? `apis/${groupVersionOf(type)}` : `api/${type.version}`,
    );
  }
}

/** Version 2 is available in protobuf too; some clients ask for version 3 in it and accept JSON when that is refused. */
function acceptedType(request: HttpRequest, path: string): string {
  const types = [jsonType, ...(path === "/openapi/v2" ? swaggerProtobufTypes : [])];
  for (const { mediaType } of acceptedParts(request)) {
    if ([jsonType, "*/*", "application/*", ""].includes(mediaType)) return jsonType;
    if (types.includes(mediaType)) return swaggerProtobufType;
  }
  throw new StatusError({
    code: 406,
    message: `only the following media types are accepted: ${types.join(", ")}`,
  });
}
