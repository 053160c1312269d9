import { type Strategy } from "../../resources/resource-type.ts";

interface Namespace {
  spec?: { finalizers?: string[] };
  status?: { phase?: string };
}

/** `pkg/registry/core/namespace/strategy.go`. */
export const namespaceStrategy: Strategy = {
  nameRule: "label",
  selectableFields: ["status.phase", "name"],
  defaults({ metadata }) {
    metadata.labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name ?? "" };
  },
  prepare(object, { old, subresource }) {
    const namespace = object as Namespace;
    if (!old) {
      // Removed through /finalize by the controller that has emptied the namespace.
      namespace.spec = { finalizers: ["kubernetes"] };
      namespace.status = { phase: "Active" };
    } else if (subresource !== "finalize") {
      object.spec = old.spec;
    }
  },
};
