import { type CustomResourceDefinition } from "@spry/kube/browser";
import {
  boolean,
  containerSecurityContext,
  envVar,
  int32,
  int64,
  list,
  object,
  podSecurityContext,
  resourceRequirements,
  type Schema,
  string,
  stringMap,
} from "./core-schemas.ts";
import { conditionTypes, healthConditionTypes } from "./conditions.ts";
import { reservedEnvNames } from "./environment.ts";
import { described } from "./field-descriptions.ts";
import { labelPrefix } from "./labels.ts";
import { presets, type PresetKind } from "./presets.ts";
import { retiredRuntimes, runtimes } from "./runtimes.ts";
import { servingBounds } from "./serving.ts";
import { functions } from "./types.ts";
import { sourceImageMaxLength, sourceImagePattern } from "./source-image.ts";
import { functionV1alpha1Schema } from "./v1alpha1/crd.ts";
import { functionsV1alpha1 } from "./v1alpha1/types.ts";

/**
 * The CustomResourceDefinition of Functions, without the webhook that converts between its versions: who runs one adds
 * it. Every list and map that a rule walks is bounded,
 * because an API server refuses rules whose cost it cannot bound.
 */
export function functionCrd(): CustomResourceDefinition {
  const { group, version, kind, plural } = functions;
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: "function",
        shortNames: ["fn", "fns"],
        categories: ["kyma-serverless", "all"],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: ".spec.replicas",
              statusReplicasPath: ".status.replicas",
              labelSelectorPath: ".status.podSelector",
            },
          },
          additionalPrinterColumns: [...printerColumns(".status.revision"), coldStartColumn],
          schema: { openAPIV3Schema: described(functionSchema()) } as VersionSchema,
        },
        {
          name: functionsV1alpha1.version,
          served: true,
          storage: false,
          deprecated: true,
          deprecationWarning: `${group}/${functionsV1alpha1.version} Function is deprecated; use ${version}`,
          subresources: { status: {} },
          additionalPrinterColumns: printerColumns(".metadata.generation"),
          schema: { openAPIV3Schema: functionV1alpha1Schema() } as VersionSchema,
        },
      ],
    },
  };
}

type VersionSchema = NonNullable<CustomResourceDefinition["spec"]["versions"][number]["schema"]>;

/** With `-o wide`: how long ago. */
const coldStartColumn = {
  name: "Cold Start",
  type: "date",
  jsonPath: ".status.lastColdStart",
  priority: 1,
};

/** `version`: the generation counts changes of the scale, too, but v1alpha1 has no number of revisions. */
function printerColumns(version: string) {
  const condition = (name: string, type: string) => ({
    name,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=='${type}')].status`,
  });
  return [
    condition("Configured", "ConfigurationReady"),
    condition("Built", "BuildReady"),
    condition("Running", "Running"),
    { name: "Runtime", type: "string", jsonPath: ".spec.runtime" },
    { name: "Version", type: "integer", jsonPath: version },
    { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
  ];
}

function functionSchema(): Schema {
  return {
    ...object({
      apiVersion: string,
      kind: string,
      metadata: { type: "object" },
      spec: specSchema(),
      // Before the first pass: kstatus takes an object without a generation and conditions for a healthy one.
      status: { ...statusSchema(), default: { observedGeneration: -1 } },
    }),
    description: "A few lines of code that become an HTTP service.",
  };
}

/** The schema of a Function's `spec`. */
export function specSchema(): Schema {
  return object(
    {
      runtime: runtimeSchema(),
      runtimeImageOverride: {
        ...string,
        description: "An image that replaces the runtime's own as the base of the build.",
      },
      source: sourceSchema(),
      env: {
        ...list(envVar),
        maxItems: 1024,
        description: "Environment variables, as in a container.",
        ...rules([
          `self.all(e, !(e.name in ${quoted(reservedEnvNames)}))`,
          `Following envs are reserved and cannot be used: ${quoted(reservedEnvNames)}`,
        ]),
      },
      resourceConfiguration: object({
        function: profileSchema("function"),
        build: profileSchema("build"),
      }),
      scaleConfig: {
        ...object({ minReplicas: atLeast(0), maxReplicas: atLeast(1) }, [
          "minReplicas",
          "maxReplicas",
        ]),
        description:
          "Bounds of autoscaling: on CPU utilisation, or on requests where minReplicas is 0 or traffic or concurrency is set.",
        ...rules([
          "self.minReplicas <= self.maxReplicas",
          "minReplicas should be less than or equal maxReplicas",
        ]),
      },
      replicas: {
        ...atLeast(0),
        default: 1,
        description: "How many Pods run; scalers write it through the scale subresource.",
      },
      concurrency: {
        ...object({
          target: {
            ...between(servingBounds.concurrency),
            description: "Requests at a time that scaling aims at for each Pod.",
          },
          limit: {
            ...between(servingBounds.concurrency),
            description: "Most requests at a time of one Pod; further ones wait.",
          },
        }),
        description: "How many requests a Pod handles at a time.",
        ...rules([
          "!has(self.target) || !has(self.limit) || self.target <= self.limit",
          "target should be less than or equal limit",
        ]),
      },
      timeoutSeconds: {
        ...between(servingBounds.timeoutSeconds),
        description: "How long a request may take until it is answered with 408 or 504.",
      },
      traffic: trafficSchema(),
      schedules: schedulesSchema(),
      template: {
        ...object({ labels: stringMap, annotations: stringMap }),
        ...rules([
          "!has(self.labels) && !has(self.annotations)",
          "Not supported: Use spec.labels and spec.annotations to label and/or annotate Function's Pods.",
        ]),
      },
      secretMounts: {
        ...list(
          object(
            {
              secretName: { ...string, minLength: 1, maxLength: 253 },
              mountPath: { ...string, minLength: 1 },
            },
            ["secretName", "mountPath"],
          ),
        ),
        maxItems: 256,
        description: "Secrets mounted into the container as files.",
      },
      labels: {
        ...stringMap,
        maxProperties: 256,
        description: "Labels of the Function's Pods.",
        ...rules(domainRule("Labels"), [
          "self.all(e, size(self[e]) < 64)",
          "Label value cannot be longer than 63",
        ]),
      },
      annotations: {
        ...stringMap,
        maxProperties: 256,
        description: "Annotations of the Function's Pods.",
        ...rules(domainRule("Annotations")),
      },
      podSecurityContext: {
        ...podSecurityContext,
        description: "Merged field by field over the defaults.",
      },
      containerSecurityContext: {
        ...containerSecurityContext,
        description: "Merged field by field over the defaults.",
      },
    },
    ["source"],
  );
}

/**
 * Rules instead of an enum: an API server that finds a value outside of an enum checks no rules at
 * all, so a retired name would hide its successor's and every other mistake.
 */
function runtimeSchema(): Schema {
  const supported = runtimes.map((runtime) => runtime.name);
  const successors = [...new Set(Object.values(retiredRuntimes))];
  const retired = successors.map((successor): [rule: string, message: string] => {
    const names = Object.keys(retiredRuntimes).filter(
      (name) => retiredRuntimes[name] === successor,
    );
    const message = `This runtime is no longer supported, use ${successor}`;
    return [`!(self in ${quoted(names)})`, message];
  });
  const known = [...supported, ...Object.keys(retiredRuntimes)];
  const message = `Unknown runtime, please use one of: ${quoted(supported)}`;
  return {
    ...string,
    maxLength: 64,
    description: `The language runtime: ${supported.join(", ")}; nodejs20 is deprecated.`,
    ...rules(...retired, [`self in ${quoted(known)}`, message]),
  };
}

function sourceSchema(): Schema {
  return {
    ...object({
      inline: object({ source: { ...string, minLength: 1 }, dependencies: string }, ["source"]),
      gitRepository: {
        ...object(
          {
            url: string,
            auth: {
              ...object(
                {
                  type: { ...string, enum: ["basic", "key"] },
                  secretName: { ...string, maxLength: 253 },
                },
                ["type", "secretName"],
              ),
              ...rules(notBlank("secretName", "SecretName")),
            },
            baseDir: { ...string, maxLength: 4096 },
            reference: { ...string, maxLength: 4096 },
          },
          ["url"],
        ),
        ...rules(notBlank("baseDir", "BaseDir"), notBlank("reference", "Reference")),
      },
      image: {
        ...string,
        maxLength: sourceImageMaxLength,
        pattern: sourceImagePattern,
        description:
          "An image with one layer of files, by digest, in the Function's own repository of its registry; `spry deploy` pushes it.",
      },
    }),
    ...rules([
      "has(self.image) ? !has(self.inline) && !has(self.gitRepository) : " +
        "has(self.gitRepository) && !has(self.inline) || !has(self.gitRepository) && has(self.inline)",
      "Use GitRepository or Inline source",
    ]),
  };
}

function schedulesSchema(): Schema {
  const schedule = object(
    {
      name: {
        ...string,
        maxLength: 63,
        pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        description:
          "Name of the schedule, for the header x-schedule-name and for spry schedule run.",
      },
      cron: {
        ...string,
        minLength: 2,
        maxLength: 256,
        description: "Minute, hour, day of month, month, day of week; or @hourly, @daily, ...",
      },
      timeZone: {
        ...string,
        maxLength: 64,
        pattern: "^[A-Za-z][A-Za-z0-9_+/-]*$",
        description: "Name of the IANA database, such as Europe/Berlin; UTC by default.",
      },
      suspend: { ...boolean, description: "Whether its runs are suspended." },
      overlap: {
        ...string,
        enum: ["Allow", "Skip"],
        description: "What happens when the previous run has not ended; Allow by default.",
      },
      startingDeadlineSeconds: {
        ...between([1, 86_400]),
        description: "A run that is later than this many seconds is missed; 300 by default.",
      },
      payload: { ...string, maxLength: 65_536, description: "Body of the request." },
      contentType: {
        ...string,
        maxLength: 256,
        pattern: "^[ -~]*$",
        description: "Content-Type of the request; application/json by default.",
      },
      path: {
        ...string,
        maxLength: 1_024,
        pattern: "^/[!-~]*$",
        description: "Path and query of the request; / by default.",
      },
      retries: { ...between([0, 100]), description: "Retries of a failed run; 0 by default." },
    },
    ["name", "cron"],
  );
  return {
    ...list(schedule),
    maxItems: 100,
    description: "When the Function is called by itself; between two runs it needs no Pod.",
    ...rules([
      "self.all(e, self.exists_one(f, f.name == e.name))",
      "Names of schedules should be unique",
    ]),
  };
}

function trafficSchema(): Schema {
  const share = object({
    revision: { ...atLeast(1), description: "Number of the version; spry history lists them." },
    latest: { ...boolean, description: "The latest version, whichever that is." },
    percent: { ...between([0, 100]), description: "Share of the requests." },
    tag: {
      ...string,
      maxLength: servingBounds.tagLength,
      pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$",
      description: "A host of its own for this share: <tag>-<name>.<namespace>.",
    },
  });
  return {
    ...list({
      ...share,
      ...rules([
        "has(self.revision) != (has(self.latest) && self.latest)",
        "Use revision or latest: true",
      ]),
    }),
    maxItems: servingBounds.shares,
    description: "Which versions get which share of the requests; without it, the latest gets all.",
    ...rules(
      [
        "size(self) == 0 || self.map(e, has(e.percent) ? e.percent : 0).sum() == 100",
        "Percentages of traffic should add up to 100",
      ],
      [
        "self.all(e, !has(e.tag) || self.exists_one(f, has(f.tag) && f.tag == e.tag))",
        "Tags of traffic should be unique",
      ],
    ),
  };
}

function profileSchema(kind: PresetKind): Schema {
  const known = quoted(Object.keys(presets[kind]));
  return {
    ...object({ profile: { ...string, maxLength: 64 }, resources: resourceRequirements }),
    ...rules(
      [
        "has(self.profile) && !has(self.resources) || !has(self.profile) && has(self.resources)",
        "Use profile or resources",
      ],
      [
        `!has(self.profile) || self.profile in ${known}`,
        `Invalid profile, please use one of: ${known}`,
      ],
    ),
  };
}

function statusSchema(): Schema {
  return object({
    conditions: list(
      object(
        {
          type: { ...string, enum: [...conditionTypes, ...healthConditionTypes] },
          status: { ...string, enum: ["True", "False", "Unknown"] },
          reason: string,
          message: string,
          lastTransitionTime: { ...string, format: "date-time" },
          observedGeneration: int64,
        },
        ["type", "status"],
      ),
    ),
    observedGeneration: int64,
    runtime: string,
    runtimeImage: string,
    commit: string,
    reference: string,
    baseDir: string,
    gitRepository: object({ url: string, reference: string, baseDir: string, commit: string }),
    replicas: int32,
    podSelector: string,
    lastColdStart: { ...string, format: "date-time" },
    functionResourceProfile: string,
    buildResourceProfile: string,
    build: {
      ...object(
        {
          key: string,
          image: string,
          failures: int32,
          retryAfter: { ...string, format: "date-time" },
          retriedFor: string,
        },
        ["key"],
      ),
      description: "The newest build: what determined it, and the image by digest.",
    },
    revision: {
      ...int64,
      description: "Number of the newest version that has become ready; spry history lists them.",
    },
  });
}

const atLeast = (minimum: number): Schema => ({ ...int32, minimum });
const between = ([minimum, maximum]: readonly [number, number]): Schema => ({
  ...int32,
  minimum,
  maximum,
});

const quoted = (words: readonly string[]): string =>
  `[${words.map((word) => `'${word}'`).join(",")}]`;

function rules(...list: [rule: string, message: string][]): Schema {
  return { "x-kubernetes-validations": list.map(([rule, message]) => ({ rule, message })) };
}

function notBlank(field: string, name: string): [rule: string, message: string] {
  return [
    `has(self.${field}) && self.${field}.matches('\\\\S')`,
    `${name} is required and cannot be empty`,
  ];
}

function domainRule(what: string): [rule: string, message: string] {
  return [
    `self.all(e, !e.startsWith('${labelPrefix}'))`,
    `${what} has key starting with ${labelPrefix} which is not allowed`,
  ];
}
