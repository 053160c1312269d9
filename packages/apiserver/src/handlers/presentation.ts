import { type UnknownObject } from "@spry/kube";
import { type ResourceRequest } from "../request.ts";
import { badRequest } from "../errors.ts";
import { shown } from "../schema/conversion/conversions.ts";
import { type Accepted } from "../http/negotiation.ts";
import { type ListItems, ListText } from "../http/list-text.ts";
import { type ResourceType } from "../resources/resource-type.ts";
import { type StoredObject } from "../store/stored-object.ts";
import { tableOf, type TableOptions } from "../table/table.ts";
import { jsonEvents, protobufEvents, type WatchEncoding } from "./watch-encoding.ts";

/** Writes objects in the form and version that a client wants. */
export interface Presentation {
  /** Names what is the same for all watchers that want the same. */
  key: string;
  /** One object, as JSON text. */
  one(stored: StoredObject): string;
  /** The same of an object that is not stored (the outcome of a write). */
  object(object: UnknownObject): unknown;
  list(items: StoredObject[], metadata: object): ListText;
  /** Of a watch, for all events but the first: tables name their columns once. */
  later?: Presentation;
  /** How a watch writes its events. */
  encoding: WatchEncoding;
}

export function presentationOf(request: ResourceRequest, accepted: Accepted): Presentation {
  const encoding = accepted.protobuf ? protobufEvents : jsonEvents;
  const written = ({ key, ...form }: PresentedForm): Presentation => ({
    ...form,
    key: `${key} ${encoding.contentType}`,
    encoding,
  });
  const first = written(formOf(request, accepted, true));
  if (accepted.form === "table") first.later = written(formOf(request, accepted, false));
  return first;
}

type PresentedForm = Omit<Presentation, "encoding" | "later">;

function formOf(
  { type, query }: ResourceRequest,
  accepted: Accepted,
  headers: boolean,
): PresentedForm {
  checkInclude(query.get("includeObject") ?? "");
  const key = `${type.group}/${type.version} ${accepted.form} ${accepted.version}`;
  if (accepted.form === "table") {
    const include = query.get("includeObject") || "Metadata";
    return tablePresentation(type, key, { include, version: accepted.version, headers });
  }
  if (accepted.form === "partial") return partialPresentation(type, key, accepted.version);
  const one = (stored: StoredObject) =>
    type.convert || type.conversion ? JSON.stringify(shown(type, stored)) : stored.json;
  return {
    key,
    one,
    object: (object) => object,
    list: (items, metadata) =>
      // Lists of custom resources always have a continue token, even if it is empty.
      listText(
        type,
        itemsOf(items, one, !type.convert && !type.conversion),
        type.custom ? { continue: "", ...metadata } : metadata,
      ),
  };
}

function checkInclude(include: string): void {
  if (["", "Metadata", "Object", "None"].includes(include)) return;
  const shown = JSON.stringify(include);
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${shown}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

function listText(type: ResourceType, items: ListItems, metadata: object): ListText {
  const apiVersion = type.group ? `${type.group}/${type.version}` : type.version;
  return withItems({ kind: type.listKind, apiVersion, metadata }, "items", items);
}

/** The fields, and after them the items in a field of their own. */
function withItems(fields: object, name: string, items: ListItems): ListText {
  return new ListText(`${JSON.stringify(fields).slice(0, -1)},"${name}":[`, items, "]}");
}

function itemsOf(
  objects: readonly StoredObject[],
  text: (stored: StoredObject) => string,
  areStored = false,
): ListItems {
  const at = (index: number) => {
    const stored = objects[index];
    return stored ? text(stored) : "null";
  };
  return { count: objects.length, at, areStored };
}

function partialPresentation(type: ResourceType, key: string, version: string): PresentedForm {
  const apiVersion = `meta.k8s.io/${version}`;
  const object = ({ metadata }: UnknownObject) => ({
    kind: "PartialObjectMetadata",
    apiVersion,
    metadata,
  });
  return {
    key,
    object,
    one: (stored) => JSON.stringify(object(stored.object)),
    list: (items, metadata) =>
      withItems(
        { kind: "PartialObjectMetadataList", apiVersion, metadata },
        "items",
        itemsOf(items, (stored) => JSON.stringify(object(stored.object))),
      ),
  };
}

function tablePresentation(
  type: ResourceType,
  key: string,
  options: Omit<TableOptions, "metadata">,
): PresentedForm {
  const table = (objects: UnknownObject[], metadata: object) =>
    tableOf(type, objects, { metadata, ...options });
  const versionOf = (object: UnknownObject) => ({
    resourceVersion: object.metadata.resourceVersion,
  });
  const object = (each: UnknownObject) => table([each], versionOf(each));
  return {
    key: `${key} ${options.include} ${options.headers}`,
    object,
    one: (stored) => JSON.stringify(object(shown(type, stored))),
    list: (items, metadata) => {
      const { rows: _, ...fields } = table([], metadata);
      const row = (stored: StoredObject) =>
        JSON.stringify(table([shown(type, stored)], {}).rows[0] ?? null);
      return withItems(fields, "rows", itemsOf(items, row));
    },
  };
}
