import { createHash } from "node:crypto";
import { StatusError } from "@spry/kube";
import { unknownPath } from "../errors.ts";
import { type Catalog } from "../resources/catalog.ts";
import { groupVersionOf, type ResourceType } from "../resources/resource-type.ts";
import { builtin } from "../schema/schema.ts";
import { pathsOf, schemasOf } from "./documents.ts";

const info = { title: "Kubernetes", version: builtin.release };
const prefix = "/openapi/v3/";

interface Document {
  text: string;
  hash: string;
}

/** The schemas of what is served, for clients; made when asked for, kept until the catalog changes. */
export class OpenApi {
  readonly #catalog: Catalog;
  #generation = -1;
  #documents = new Map<string, Document>();

  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }

  respond(request: Request, path: string): Response {
    checkAccept(request);
    if (this.#generation !== this.#catalog.generation) {
      this.#documents.clear();
      this.#generation = this.#catalog.generation;
    }
    const { text, hash } = this.#document(path);
    const etag = `"${hash}"`;
    if (request.headers.get("if-none-match") === etag) return new Response(null, { status: 304 });
    return new Response(text, {
      headers: { "content-type": "application/json", etag, vary: "Accept" },
    });
  }

  #document(path: string): Document {
    let document = this.#documents.get(path);
    if (!document) {
      const text = JSON.stringify(this.#make(path));
      const hash = createHash("sha512").update(text).digest("hex").slice(0, 64).toUpperCase();
      document = { text, hash };
      this.#documents.set(path, document);
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

  /** Hashes only tell that a document may have changed: those of definitions come from their objects. */
  #index(): object {
    const entries = [...this.#types()].map(([key, types]) => {
      const state = types.map(
        (type) => `${type.plural} ${type.custom?.crdRevision ?? builtin.release}`,
      );
      const hash = createHash("sha256").update(state.join("\n")).digest("hex").toUpperCase();
      return [key, { serverRelativeURL: `${prefix}${key}?hash=${hash}` }];
    });
    return Object.fromEntries(entries) as object;
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

/** Some clients ask for protobuf first and take JSON when told that there is none. */
function checkAccept(request: Request): void {
  const accept = request.headers.get("accept") ?? "*/*";
  if (/application\/json|\*\/\*|application\/\*/.test(accept)) return;
  throw new StatusError({
    code: 406,
    message: "only the following media types are accepted: application/json",
  });
}
