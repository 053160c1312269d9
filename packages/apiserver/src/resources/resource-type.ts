import { type UnknownObject } from "@spry/kube";
import { type FieldErrors } from "../field-errors.ts";
import { type Schema } from "../schema/schema.ts";
import { type CustomVersion } from "./custom-version.ts";
import { type ConversionWebhook } from "./webhook-client.ts";

/** What is known of a write while it is prepared. */
export interface WriteContext {
  /** RFC 3339, whole seconds. */
  now: string;
  /** The version that is being replaced. */
  old?: UnknownObject | undefined;
  subresource?: string | undefined;
}

/**
 * What a built-in kind does beyond being stored. All functions change the object in place; `validate`
 * reports. Order of a write: `defaults`, webhooks, `prepare`, `validate`.
 */
export interface Strategy {
  defaults?(object: UnknownObject): void;
  /** Sets what the server owns (initial status, allocated values). */
  prepare?(object: UnknownObject, context: WriteContext): void;
  validate?(
    object: UnknownObject,
    errors: FieldErrors,
    old: UnknownObject | undefined,
    subresource: string,
  ): void;
  /** Warnings to the client about an object that is valid, but perhaps not what was intended. */
  warnings?(object: UnknownObject, old: UnknownObject | undefined): string[];
  /** Names follow DNS subdomains unless said otherwise. */
  nameRule?: "subdomain" | "label" | "service" | "path";
  /** Whether `metadata.generation` counts changes of what is not status. */
  generation?: boolean;
  /** Metadata that it counts as well. */
  generationOf?: ("labels" | "annotations")[];
  /** What a deletion without a policy does about dependents: `Background` unless said otherwise. */
  deletionPolicy?: { policy: "Orphan"; warning: string };
  /** Whether an update has to name the resourceVersion that it replaces. */
  conditionalUpdate?: boolean;
  /** Fields for `?fieldSelector=` besides name and namespace. */
  selectableFields?: string[];
}

/** One resource in one version, as it is served. */
export interface ResourceType {
  group: string;
  version: string;
  kind: string;
  listKind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories: string[];
  namespaced: boolean;
  /** `<group>/<plural>` of where the objects are stored; other groups may share it (Events do). */
  collection: string;
  /** apiVersion in which the objects are stored. */
  storageApiVersion: string;
  hasStatus: boolean;
  hasScale: boolean;
  schema: Schema;
  strategy: Strategy;
  /** Set for kinds of a CustomResourceDefinition. */
  custom?: CustomVersion;
  /** Between the stored version and this one; absent when they are the same. */
  convert?: { toStorage(object: UnknownObject): void; fromStorage(object: UnknownObject): void };
  /** Instead of `convert`, where a webhook knows how; see `schema/conversion`. */
  conversion?: ConversionWebhook;
}

export function groupVersionOf({ group, version }: { group: string; version: string }): string {
  return group ? `${group}/${version}` : version;
}
