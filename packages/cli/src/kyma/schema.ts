/** The keys of the original's `config.yaml` (its CLI's own documentation), for editors and for the checks of `config-yaml.ts`. */
import { runtimes } from "@spry/function";

export const knownVersions = ["v0", "v1"];

const text = { type: "string" };
/** What the original reads as text, too. */
const scalar = { type: ["string", "number", "boolean"] };
const scalars = { type: "object", additionalProperties: scalar };
const texts = { type: "array", items: text };

interface Properties {
  readonly [key: string]: object;
}
const object = (properties: Properties, required: readonly string[] = []) => ({
  type: "object",
  additionalProperties: false,
  ...(required.length > 0 && { required }),
  properties,
});
const list = (properties: Properties, required: readonly string[] = []) => ({
  type: "array",
  items: object(properties, required),
});

/** In capitals in the sample of the original's documentation. */
const keyOf = {
  anyOf: [
    object({ name: text, key: text }, ["name", "key"]),
    object({ Name: text, Key: text }, ["Name", "Key"]),
  ],
};
const amounts = object({ limits: scalars, requests: scalars });
const property = object({ property: text, type: text, value: text });

/** For editors, as the original's `get schema serverless`. */
export const kymaConfigSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "config.yaml of a Function",
  ...object(
    {
      schemaVersion: { enum: knownVersions },
      name: text,
      namespace: text,
      labels: scalars,
      runtimeLabels: scalars,
      runtimeAnnotations: scalars,
      runtime: { ...text, anyOf: [{ enum: runtimes.map(({ name }) => name) }, text] },
      runtimeImageOverride: text,
      source: object(
        {
          sourceType: { enum: ["inline", "git"] },
          sourcePath: text,
          sourceHandlerName: text,
          depsHandlerName: text,
          url: text,
          repository: text,
          reference: text,
          baseDir: text,
          credentialsSecretName: text,
          credentialsType: { enum: ["basic", "key"] },
        },
        ["sourceType"],
      ),
      // The original's documentation says `resources`, its code `resource`.
      resource: amounts,
      resources: amounts,
      env: list(
        {
          name: text,
          value: scalar,
          valueFrom: object({ configMapKeyRef: keyOf, secretKeyRef: keyOf }),
        },
        ["name"],
      ),
      subscriptions: list({
        name: text,
        // v0
        protocol: text,
        filter: object({
          dialect: text,
          filters: list({ eventSource: property, eventType: property }),
        }),
        // v1
        typeMatching: { enum: ["exact", "standard"] },
        source: text,
        types: texts,
      }),
      apiRules: list(
        {
          name: text,
          gateway: text,
          service: object({ host: text, port: { type: "integer", minimum: 1 } }, ["host"]),
          rules: list({
            path: text,
            methods: texts,
            accessStrategies: list({ handler: text, config: { type: "object" } }, ["handler"]),
          }),
        },
        ["service", "rules"],
      ),
    },
    ["name", "runtime", "source"],
  ),
};
