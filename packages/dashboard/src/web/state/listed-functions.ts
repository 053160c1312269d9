import { type Function } from "@spry/function/browser";

/** With thousands of Functions, the list keeps only what it shows, without their sources. */
export const listedFunctions = {
  kind: "listed",
  transform: ({ apiVersion, kind, metadata, spec, status }: Function): Function => {
    const { name, namespace, uid, resourceVersion, generation, creationTimestamp } = metadata;
    const { inline, gitRepository, image } = spec.source ?? {};
    return {
      ...(apiVersion !== undefined && { apiVersion }),
      ...(kind !== undefined && { kind }),
      metadata: {
        ...(name !== undefined && { name }),
        ...(namespace !== undefined && { namespace }),
        ...(uid !== undefined && { uid }),
        ...(resourceVersion !== undefined && { resourceVersion }),
        ...(generation !== undefined && { generation }),
        ...(creationTimestamp !== undefined && { creationTimestamp }),
        ...(metadata.deletionTimestamp !== undefined && {
          deletionTimestamp: metadata.deletionTimestamp,
        }),
      },
      spec: {
        ...(spec.runtime !== undefined && { runtime: spec.runtime }),
        source: {
          ...(inline && { inline: { source: "" } }),
          ...(gitRepository && { gitRepository }),
          ...(image !== undefined && { image }),
        },
      },
      ...(status && {
        status: {
          ...(status.conditions && {
            conditions: status.conditions.map((each) => ({
              ...each,
              message: each.message.slice(0, 200),
            })),
          }),
          ...(status.observedGeneration !== undefined && {
            observedGeneration: status.observedGeneration,
          }),
          ...(status.revision !== undefined && { revision: status.revision }),
          ...(status.replicas !== undefined && { replicas: status.replicas }),
        },
      }),
    };
  },
};
