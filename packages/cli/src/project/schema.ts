/** The keys of `spry.yaml`, as a JSON schema (draft-07, which editors' YAML extensions read) and as the checks of `config.ts`. */
import { presets, reservedEnvNames, runtimes } from "@spry/function";

/** Name of the configuration file of a directory. */
export const configName = "spry.yaml";
/** Where `spry init` puts the schema, relative to the directory: editors find it without a network. */
export const schemaName = ".vscode/spry.schema.json";

const text = { type: "string" };
const reference = (kind: string, what: string) => ({
  type: "object",
  description: `The value of a key of a ${what} in the Function's namespace.`,
  required: [kind, "key"],
  additionalProperties: false,
  properties: {
    [kind]: { ...text, description: `Name of the ${what}.` },
    key: { ...text, description: `Key of the ${what}.` },
    optional: {
      type: "boolean",
      description: "Do without the variable if the key does not exist.",
    },
  },
});
const texts = (description: string) => ({
  type: "object",
  description,
  additionalProperties: text,
});

const functionName = {
  pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$",
  maxLength: 63,
};

/** What a Function has, whether it is the only one of its file or one of several. */
const functionKeys = {
  runtime: {
    enum: runtimes.map(({ name }) => name),
    description:
      "Language and version. Default: what engines of package.json, .python-version or pyproject.toml asks for, or nodejs24 or python312.",
  },
  env: {
    type: "object",
    description: `Environment variables. Reserved: ${reservedEnvNames.join(", ")}.`,
    propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]*$" },
    additionalProperties: {
      anyOf: [
        { type: ["string", "number", "boolean"] },
        reference("secret", "Secret"),
        reference("configMap", "ConfigMap"),
      ],
    },
  },
  scale: {
    type: "object",
    description: "How many instances run at a time.",
    additionalProperties: false,
    properties: {
      min: {
        type: "integer",
        minimum: 0,
        description: "Minimum number of instances. Default: 1.",
      },
      max: {
        type: "integer",
        minimum: 1,
        description: "Maximum number of instances. Default: 1.",
      },
    },
  },
  profile: {
    enum: Object.keys(presets.function),
    description: "Processor and memory of an instance. Default: the platform's.",
  },
  mounts: {
    type: "array",
    description: "Secrets as directories.",
    items: {
      type: "object",
      additionalProperties: false,
      required: ["secret", "path"],
      properties: {
        secret: { ...text, description: "Name of the Secret." },
        path: { ...text, description: "Absolute path of the directory." },
      },
    },
  },
  schedules: {
    type: "array",
    description: "When the Function is called by itself: a POST for each run.",
    items: {
      type: "object",
      additionalProperties: false,
      required: ["name", "cron"],
      properties: {
        name: {
          ...text,
          pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
          maxLength: 63,
          description: "Name, for `spry schedule run` and the header x-schedule-name.",
        },
        cron: {
          ...text,
          description: "Minute, hour, day of month, month, day of week; or @hourly, @daily, …",
        },
        timeZone: { ...text, description: "Time zone, such as Europe/Berlin. Default: UTC." },
        overlap: {
          enum: ["Allow", "Skip"],
          description: "What happens when the previous run has not ended. Default: Allow.",
        },
        payload: { ...text, description: "Body of the request. Default: empty." },
        contentType: {
          ...text,
          description: "Content-Type of the body. Default: application/json.",
        },
        path: { ...text, description: "Path of the request. Default: /." },
      },
    },
  },
  labels: texts("Labels of the Function's Pods."),
  annotations: texts("Annotations of the Function's Pods."),
  handler: {
    ...text,
    description:
      "File with the handler, relative to the directory, such as src/orders.ts. Default: handler, index, app, … (docs/handlers.md).",
  },
  dialect: {
    enum: ["lambda"],
    description:
      "What the handler is written for, where its name does not say so: lambda for AWS Lambda. handler can name its function then: src/orders.create.",
  },
} as const;

/** Each key with its description and type. */
export const configSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "spry.yaml: a directory as a Function, or as several",
  type: "object",
  additionalProperties: false,
  properties: {
    name: {
      ...text,
      ...functionName,
      description: "Name of the Function and of its Service. Default: the directory's name.",
    },
    namespace: { ...text, description: "Namespace. Default: the kubeconfig's, or default." },
    ...functionKeys,
    functions: {
      type: "object",
      description:
        "Several Functions, each below its name, with any of the keys from runtime to handler. Those keys next to functions are what every Function has: maps are merged, and a Function's own value takes precedence.",
      minProperties: 1,
      maxProperties: 100,
      propertyNames: functionName,
      additionalProperties: {
        type: ["object", "null"],
        additionalProperties: false,
        properties: {
          directory: {
            ...text,
            description:
              "Directory of its files, relative to spry.yaml. Several Functions can share one. Default: the one with the Function's name, or else that of spry.yaml.",
          },
          ...functionKeys,
        },
      },
    },
  },
} as const;
