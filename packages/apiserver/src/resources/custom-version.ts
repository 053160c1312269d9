import { type Schema } from "../schema/schema.ts";

/** A column of `kubectl get`, as a CustomResourceDefinition words it. */
export interface PrinterColumn {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  jsonPath: string;
}

export interface ScalePaths {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
}

/** What one version of a CustomResourceDefinition says beyond names. */
export interface CustomVersion {
  crdName: string;
  /** Of the CustomResourceDefinition object: rules compiled for one are not used for the next. */
  crdRevision: string;
  openApiSchema: Schema;
  /** Of the version in which objects are stored: what it does not know cannot be kept. */
  storageSchema: Schema;
  columns: PrinterColumn[];
  scale: ScalePaths | undefined;
  selectableFields: string[];
  deprecationWarning: string | undefined;
  preserveUnknownFields: boolean;
}
