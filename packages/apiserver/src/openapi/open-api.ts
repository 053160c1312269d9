import { unknownPath } from "../errors.ts";
import { type Catalog } from "../resources/catalog.ts";

/** The schemas of what is served, for clients. */
export class OpenApi {
  readonly #catalog: Catalog;
  constructor(catalog: Catalog) {
    this.#catalog = catalog;
  }
  respond(_request: Request, _path: string): Response {
    void this.#catalog;
    throw unknownPath();
  }
}
