import { type CustomResourceDefinition } from "@spry/kube/browser";
import {
  envVar,
  int32,
  list,
  object,
  resourceRequirements,
  type Schema,
  string,
  stringMap,
} from "../core-schemas.ts";
import { gitRepositories } from "./types.ts";

const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as Schema;
const replicas: Schema = { ...int32, minimum: 1 };

/** The schema of a v1alpha1 Function. What may be in its fields is judged when it has become a v1alpha2 one. */
export function functionV1alpha1Schema(): Schema {
  return {
    ...object({
      apiVersion: string,
      kind: string,
      metadata: { type: "object" },
      spec: object(
        {
          source: { ...string, description: "Code, or the name of a GitRepository." },
          type: { ...string, enum: ["", "git"] },
          deps: string,
          runtime: string,
          runtimeImageOverride: string,
          env: { ...list(envVar), maxItems: 1024 },
          resources: resourceRequirements,
          buildResources: resourceRequirements,
          minReplicas: replicas,
          maxReplicas: replicas,
          labels: stringMap,
          baseDir: string,
          reference: string,
        },
        ["source"],
      ),
      status: anything,
    }),
    description: "The older version of a Function, which is stored as v1alpha2.",
  };
}

/** The CustomResourceDefinition of GitRepositories, which only v1alpha1 Functions refer to. */
export function gitRepositoryCrd(): CustomResourceDefinition {
  const { group, version, kind, plural } = gitRepositories;
  const auth = object({ type: { ...string, enum: ["basic", "key"] }, secretName: string }, [
    "type",
    "secretName",
  ]);
  const schema = object({
    apiVersion: string,
    kind: string,
    metadata: { type: "object" },
    spec: object({ url: string, auth }, ["url"]),
    status: anything,
  });
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { kind, listKind: `${kind}List`, plural, singular: "gitrepository" },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: [
            { name: "URL", type: "string", jsonPath: ".spec.url" },
            { name: "Auth", type: "string", jsonPath: ".spec.auth.type" },
            { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
          ],
          schema: { openAPIV3Schema: schema } as NonNullable<
            CustomResourceDefinition["spec"]["versions"][number]["schema"]
          >,
        },
      ],
    },
  };
}
