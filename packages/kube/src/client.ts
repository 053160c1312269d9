import { type KubeList, type KubeObject, type WatchEvent } from "./objects.ts";
import { apiVersionOf, pathOf, type Resource } from "./resources.ts";
import { StatusError, type Status } from "./errors.ts";
import { type PlainResponse, type Transport, transportOrigin } from "./transport.ts";
import { readLines } from "./lines.ts";
import { withoutManagedFields } from "./managed-fields.ts";
import { type SharedObjects } from "./shared-objects.ts";

export interface Target {
  namespace?: string | undefined;
  name: string;
}

export interface ListOptions {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /** Page size; `list` follows `continue` until the end. */
  limit?: number;
  resourceVersion?: string;
  /** Leaves who owns which field out of the objects: nearly half of what a list says, and hardly ever read. */
  omitManagedFields?: boolean;
  signal?: AbortSignal;
}

export interface WatchOptions<T extends KubeObject = KubeObject> {
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  resourceVersion?: string;
  timeoutSeconds?: number;
  /** As in a list. */
  omitManagedFields?: boolean;
  /** All watches that share these get the same objects, which must not be changed. */
  shared?: SharedObjects<T>;
  signal?: AbortSignal;
}

export interface WriteOptions {
  dryRun?: boolean;
  fieldManager?: string;
  subresource?: string;
  signal?: AbortSignal;
}

export interface DeleteOptions {
  gracePeriodSeconds?: number;
  propagationPolicy?: "Foreground" | "Background" | "Orphan";
  preconditions?: { uid?: string; resourceVersion?: string };
  /** Checked by the server, and nothing is deleted. */
  dryRun?: readonly "All"[];
  signal?: AbortSignal;
}

export interface RawOptions {
  body?: unknown;
  contentType?: string;
  accept?: string;
  signal?: AbortSignal | undefined;
}

export type PatchType = "json" | "merge" | "strategic";

const patchMediaType: Record<PatchType, string> = {
  json: "application/json-patch+json",
  merge: "application/merge-patch+json",
  strategic: "application/strategic-merge-patch+json",
};

/** The last page size for lists: small enough to stay smooth, large enough to be few. */
const defaultPageSize = 500;

/**
 * A thin, typed Kubernetes client. Every failure is a `StatusError`, also when the server's answer
 * was not a `Status` (a proxy's HTML page, for example).
 */
export class KubeClient {
  readonly transport: Transport;
  readonly #fieldManager: string;

  constructor(transport: Transport, options: { fieldManager?: string } = {}) {
    this.transport = transport;
    this.#fieldManager = options.fieldManager ?? "spry";
  }

  /** The same client with something between it and its transport: a fence, a limit, a count. */
  through(wrap: (transport: Transport) => Transport): KubeClient {
    return new KubeClient(wrap(this.transport), { fieldManager: this.#fieldManager });
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    target: Target & { subresource?: string; signal?: AbortSignal },
  ): Promise<T> {
    return (await this.#json("GET", pathOf(resource, target), { signal: target.signal })) as T;
  }

  /** All objects. The list's resourceVersion is that of the first page. */
  async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): Promise<KubeList<T>> {
    let all: KubeList<T> | undefined;
    for await (const page of this.pages(resource, options)) {
      if (all) all.items.push(...page.items);
      else all = page;
    }
    if (!all) throw new Error(`listing ${resource.plural}: the API server returned no page`);
    delete all.metadata.continue;
    return all;
  }

  /**
   * The same page by page, for those who need not hold everything at once. All pages show the moment of the first;
   * when that is too long ago for the server, a `StatusError` (410, `Expired`) ends them.
   */
  async *pages<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions = {},
  ): AsyncGenerator<KubeList<T>> {
    const path = pathOf(resource, { namespace: options.namespace });
    const query = new URLSearchParams({ limit: String(options.limit ?? defaultPageSize) });
    if (options.labelSelector) query.set("labelSelector", options.labelSelector);
    if (options.fieldSelector) query.set("fieldSelector", options.fieldSelector);
    if (options.resourceVersion !== undefined)
      query.set("resourceVersion", options.resourceVersion);
    for (;;) {
      const text = await this.#text("GET", `${path}?${query}`, { signal: options.signal });
      const page = JSON.parse(
        options.omitManagedFields ? withoutManagedFields(text) : text,
      ) as KubeList<T>;
      // A cluster leaves these out of a list's items, unlike everywhere else.
      for (const item of page.items) {
        item.apiVersion ??= apiVersionOf(resource);
        item.kind ??= resource.kind;
      }
      const next = page.metadata.continue;
      yield page;
      if (!next) return;
      query.set("continue", next);
      query.delete("resourceVersion");
    }
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const { namespace, name } = object.metadata;
    const path = options.subresource
      ? pathOf(resource, { namespace, name, subresource: options.subresource })
      : pathOf(resource, { namespace });
    return (await this.#json("POST", path + this.#query(options), {
      body: typed(resource, object),
      signal: options.signal,
    })) as T;
  }

  /** Replaces the object; its `resourceVersion`, when present, must still be current. */
  async update<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions = {},
  ): Promise<T> {
    const { namespace, name } = object.metadata;
    const path = pathOf(resource, { namespace, name, subresource: options.subresource });
    return (await this.#json("PUT", path + this.#query(options), {
      body: typed(resource, object),
      signal: options.signal,
    })) as T;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    target: Target,
    patch: unknown,
    options: WriteOptions & { type?: PatchType } = {},
  ): Promise<T> {
    const path = pathOf(resource, { ...target, subresource: options.subresource });
    return (await this.#json("PATCH", path + this.#query(options), {
      body: patch,
      contentType: patchMediaType[options.type ?? "merge"],
      signal: options.signal,
    })) as T;
  }

  /** Server-side apply: the object holds exactly the fields that this manager wants to own. */
  async apply<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions & { force?: boolean } = {},
  ): Promise<T> {
    const { namespace, name } = object.metadata;
    const path = pathOf(resource, { namespace, name, subresource: options.subresource });
    const query = this.#query(options, { force: String(options.force ?? true) });
    return (await this.#json("PATCH", path + query, {
      body: typed(resource, object),
      contentType: "application/apply-patch+yaml",
      signal: options.signal,
    })) as T;
  }

  async delete(resource: Resource, target: Target, options: DeleteOptions = {}): Promise<void> {
    const { signal, ...body } = options;
    await this.#json("DELETE", pathOf(resource, target), {
      body: { kind: "DeleteOptions", apiVersion: "v1", ...body },
      signal,
    });
  }

  /**
   * One watch, from `resourceVersion` until the server ends it or the signal is aborted. Bookmarks
   * are asked for and passed on. An ERROR event is thrown as a `StatusError`.
   */
  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions<T> = {},
  ): AsyncGenerator<WatchEvent<T>> {
    const query = new URLSearchParams({ watch: "true", allowWatchBookmarks: "true" });
    if (options.labelSelector) query.set("labelSelector", options.labelSelector);
    if (options.fieldSelector) query.set("fieldSelector", options.fieldSelector);
    if (options.resourceVersion) query.set("resourceVersion", options.resourceVersion);
    if (options.timeoutSeconds) query.set("timeoutSeconds", String(options.timeoutSeconds));
    const path = `${pathOf(resource, { namespace: options.namespace })}?${query}`;
    const response = await this.raw("GET", path, { signal: options.signal });
    if (!response.body) return;
    const { omitManagedFields, shared } = options;
    const parse = (line: string) =>
      JSON.parse(omitManagedFields ? withoutManagedFields(line) : line) as WatchEvent<T>;
    for await (const line of readLines(response.body, options.signal)) {
      const event = shared ? shared.event(line, parse) : parse(line);
      if (event.type === "ERROR")
        throw new StatusError({ message: "watch failed", ...(event.object as unknown as Status) });
      yield event;
    }
  }

  /** Any request by path; a status of 400 or more is thrown as a `StatusError`. */
  async raw(method: string, path: string, options: RawOptions = {}): Promise<Response> {
    const { headers, body } = contentOf(options);
    const init: RequestInit = { method, headers };
    if (body !== undefined) init.body = body;
    if (options.signal) init.signal = options.signal;
    const response = await this.transport(new Request(transportOrigin + path, init));
    if (response.status < 400) return response;
    throw statusErrorOf({ status: response.status, text: await response.text() }, method, path);
  }

  async #json(method: string, path: string, options: RawOptions = {}): Promise<unknown> {
    return JSON.parse(await this.#text(method, path, options));
  }

  /** The response's whole text. */
  async #text(method: string, path: string, options: RawOptions): Promise<string> {
    const { ask } = this.transport;
    if (!ask) return (await this.raw(method, path, options)).text();
    const { signal } = options;
    signal?.throwIfAborted();
    const response = await ask({ method, path, ...contentOf(options), signal });
    if (response.status >= 400) throw statusErrorOf(response, method, path);
    return response.text;
  }

  #query(options: WriteOptions, extra: Record<string, string> = {}): string {
    const query = new URLSearchParams({
      fieldManager: options.fieldManager ?? this.#fieldManager,
      ...extra,
    });
    if (options.dryRun) query.set("dryRun", "All");
    return `?${query}`;
  }
}

function typed<T extends KubeObject>(resource: Resource<T>, object: T): T {
  if (object.apiVersion && object.kind) return object;
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

function contentOf({ body, contentType = "application/json", accept }: RawOptions) {
  const headers: Record<string, string> = { accept: accept ?? "application/json" };
  if (body === undefined) return { headers };
  headers["content-type"] = contentType;
  return { headers, body: goJson(body) };
}

function statusErrorOf(response: PlainResponse, method: string, path: string): StatusError {
  const text = response.text.slice(0, 64 * 1024);
  try {
    const body = JSON.parse(text) as Status;
    if (body.kind === "Status") {
      return new StatusError({
        ...body,
        code: body.code ?? response.status,
        message: body.message ?? "",
      });
    }
  } catch {
    // Not JSON: said below in the server's own words.
  }
  const message = `${method} ${path.split("?")[0]}: ${response.status} ${text.slice(0, 200).trim()}`;
  return new StatusError({ code: response.status, message });
}

/**
 * As Go's `encoding/json` writes it. Kubernetes keeps the text of a field without a schema (`data` of a ControllerRevision)
 * and refuses any later patch, even of a label, when its own text for the same value differs.
 */
function goJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
