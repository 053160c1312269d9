import { at, type Case, patch, post, put, remove, type Step } from "../../step.ts";

const root = "/apis/admissionregistration.k8s.io/v1";
const configs = at("v1", "configmaps");
const rule = (resources = ["configmaps"], apiGroups = [""], apiVersions = ["v1"]) => ({
  apiGroups,
  apiVersions,
  resources,
  operations: ["*"],
});

interface Options {
  spec?: Record<string, unknown>;
  binding?: Record<string, unknown>;
}

/** A policy for the namespace of its case alone; a validation of its own tells when it is in force. */
const policy = (spec: Record<string, unknown>) =>
  post(`${root}/validatingadmissionpolicies`, {
    metadata: { name: "$ns-policy" },
    spec: {
      matchConstraints: {
        resourceRules: [rule()],
        namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "$ns" } },
      },
      ...spec,
    },
  });
const binding = (spec: Record<string, unknown> = {}) =>
  post(`${root}/validatingadmissionpolicybindings`, {
    metadata: { name: "$ns-binding" },
    spec: { policyName: "$ns-policy", validationActions: ["Deny"], ...spec },
  });
const cleanUp = [
  remove(`${root}/validatingadmissionpolicybindings/$ns-binding`),
  remove(`${root}/validatingadmissionpolicies/$ns-policy`),
];

const object = (name = "one", more: object = {}) => ({
  metadata: { name, labels: { a: "b" } },
  data: { key: "value", number: "3" },
  ...more,
});
const create = post(configs, object());
const validation = (expression: string, more: object = {}) => ({
  validations: [{ expression, ...more }],
});

/** Real servers look at their copies of the policies, which are a moment old. */
const settleMs = 1500;
function enforced(name: string, { spec, binding: bound }: Options, ...steps: Step[]): Case {
  const [first = create, ...others] = steps.length > 0 ? steps : [create];
  return {
    name: `policy ${name}`,
    steps: [policy(spec ?? {}), binding(bound), { ...first, settleMs }, ...others, ...cleanUp],
  };
}

const denied = "object.metadata.name != 'one'";
const simple: [string, Options][] = [
  ["that holds", { spec: validation("object.data.key == 'value'") }],
  ["that denies", { spec: validation(denied) }],
  ["with a message", { spec: validation(denied, { message: "not this" }) }],
  [
    "with a computed message",
    {
      spec: validation(denied, {
        message: "not this",
        messageExpression: "'not ' + object.metadata.name",
      }),
    },
  ],
  [
    "with a message of several lines",
    { spec: validation(denied, { message: "not this", messageExpression: "'a\\nb'" }) },
  ],
  ["with a reason", { spec: validation(denied, { reason: "Forbidden" }) }],
  ["with another reason", { spec: validation(denied, { reason: "RequestEntityTooLarge" }) }],
  ["that fails", { spec: validation("object.spec.x == 1") }],
  [
    "that fails, ignored",
    { spec: { ...validation("object.spec.x == 1"), failurePolicy: "Ignore" } },
  ],
  ["whose message fails", { spec: validation(denied, { messageExpression: "object.spec.x" }) }],
  [
    "with variables",
    {
      spec: {
        ...validation("variables.b == 'value!'"),
        variables: [
          { name: "a", expression: "object.data.key" },
          { name: "b", expression: "variables.a + '!'" },
        ],
      },
    },
  ],
  [
    "with variables that deny",
    {
      spec: {
        ...validation("variables.a == 'x'", { messageExpression: "'got ' + variables.a" }),
        variables: [{ name: "a", expression: "object.data.key" }],
      },
    },
  ],
  [
    "with a variable that fails",
    {
      spec: {
        ...validation("variables.a == 'x'"),
        variables: [{ name: "a", expression: "object.spec.x" }],
      },
    },
  ],
  [
    "about the namespace",
    {
      spec: validation("namespaceObject.metadata.name == 'x'", {
        messageExpression: "namespaceObject.status.phase",
      }),
    },
  ],
  [
    "about the request",
    {
      spec: validation("request.operation == 'DELETE'", {
        messageExpression:
          "request.operation + request.kind.kind + request.resource.resource + request.name",
      }),
    },
  ],
  [
    "about access",
    {
      spec: validation(
        "authorizer.group('').resource('configmaps').namespace('x').check('create').allowed()",
      ),
    },
  ],
  [
    "about refused access",
    {
      spec: validation(
        "authorizer.serviceAccount('default', 'nobody').group('').resource('secrets').check('delete').allowed()",
      ),
    },
  ],
  [
    "about access to a path",
    {
      spec: validation(
        "authorizer.path('/healthz').check('get').allowed() && authorizer.requestResource.check('custom').allowed()",
      ),
    },
  ],
  [
    "with several validations",
    {
      spec: {
        validations: [
          { expression: "true" },
          { expression: denied, message: "second" },
          { expression: "false", message: "third" },
        ],
      },
    },
  ],
  ["that warns", { spec: validation(denied), binding: { validationActions: ["Warn"] } }],
  [
    "that warns and audits",
    {
      spec: validation(denied, { message: "m" }),
      binding: { validationActions: ["Warn", "Audit"] },
    },
  ],
  [
    "with audit annotations",
    { spec: { auditAnnotations: [{ key: "k", valueExpression: "'v'" }] } },
  ],
  [
    "with audit annotations that fail",
    { spec: { auditAnnotations: [{ key: "k", valueExpression: "object.spec.x" }] } },
  ],
  [
    "with a condition",
    {
      spec: {
        ...validation("false"),
        matchConditions: [{ name: "a", expression: "object.metadata.name == 'two'" }],
      },
    },
  ],
  [
    "with a condition that fails",
    {
      spec: {
        ...validation("true"),
        matchConditions: [{ name: "a", expression: "object.spec.x == 1" }],
      },
    },
  ],
  [
    "with quantities and lists",
    {
      spec: validation(
        "quantity('1Gi').isGreaterThan(quantity('1Mi')) && object.data.all(k, object.data[k].size() < 3)",
      ),
    },
  ],
  [
    "bound to others",
    {
      spec: validation("false"),
      binding: { matchResources: { objectSelector: { matchLabels: { a: "c" } } } },
    },
  ],
  [
    "bound to these",
    {
      spec: validation("false"),
      binding: { matchResources: { objectSelector: { matchLabels: { a: "b" } } } },
    },
  ],
  [
    "bound by name",
    {
      spec: validation("false"),
      binding: { matchResources: { resourceRules: [{ ...rule(), resourceNames: ["two"] }] } },
    },
  ],
  [
    "without its rules",
    {
      spec: {
        ...validation("false"),
        matchConstraints: {
          resourceRules: [rule()],
          excludeResourceRules: [rule()],
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "$ns" } },
        },
      },
    },
  ],
];

const paramKind = { apiVersion: "v1", kind: "ConfigMap" };
const withParams = {
  ...validation(
    "object.metadata.name == 'limit' || object.metadata.name.size() <= int(params.data.max)",
    { messageExpression: "'at most ' + params.data.max" },
  ),
  paramKind,
};
const limit = post(configs, {
  metadata: { name: "limit", labels: { limit: "yes" } },
  data: { max: "2" },
});
const found = "at most 2";
const params: [string, Record<string, unknown>, awaited?: string][] = [
  ["by name", { name: "limit", parameterNotFoundAction: "Deny" }, found],
  ["by namespace", { name: "limit", namespace: "$ns", parameterNotFoundAction: "Deny" }, found],
  [
    "by selector",
    { selector: { matchLabels: { limit: "yes" } }, parameterNotFoundAction: "Deny" },
    found,
  ],
  ["absent", { name: "absent", parameterNotFoundAction: "Deny" }],
  ["absent, allowed", { name: "absent", parameterNotFoundAction: "Allow" }],
];

const broken: [string, Record<string, unknown>][] = [
  ["nothing", {}],
  ["failurePolicy", { ...validation("true"), failurePolicy: "X" }],
  ["no constraints", { ...validation("true"), matchConstraints: undefined }],
  ["no rules", { ...validation("true"), matchConstraints: {} }],
  ["rule", { ...validation("true"), matchConstraints: { resourceRules: [{}], matchPolicy: "X" } }],
  [
    "names",
    {
      ...validation("true"),
      matchConstraints: { resourceRules: [{ ...rule(), resourceNames: ["a", "a", "b/c"] }] },
    },
  ],
  ["empty expression", validation("")],
  ["message", validation("true", { message: " " })],
  ["message of several lines", validation("true", { message: "a\nb" })],
  ["empty messageExpression", validation("true", { messageExpression: " " })],
  ["reason", validation("true", { reason: "X" })],
  ["variable", { ...validation("true"), variables: [{ name: "a b", expression: "" }] }],
  ["paramKind", { ...validation("true"), paramKind: { apiVersion: "", kind: "" } }],
  ["audit annotation", { auditAnnotations: [{ key: "a b", valueExpression: "" }] }],
  ["condition", { ...validation("true"), matchConditions: [{ name: "a b", expression: "" }] }],
];
const brokenBindings: [string, Record<string, unknown>][] = [
  ["policyName", { policyName: "" }],
  ["actions", { validationActions: ["Deny", "Warn"] }],
  ["unknown action", { validationActions: ["X"] }],
  ["no action", { validationActions: [] }],
  ["paramRef", { paramRef: {} }],
  ["paramRef twice", { paramRef: { name: "a", selector: {}, parameterNotFoundAction: "X" } }],
  [
    "matchResources",
    {
      matchResources: {
        matchPolicy: "X",
        objectSelector: { matchExpressions: [{ key: "a", operator: "X" }] },
      },
    },
  ],
];

export const policies: Case[] = [
  ...simple.map(([name, options]) => enforced(name, options)),
  ...params.map(([name, paramRef, untilText = ""]): Case => ({
    name: `policy with params ${name}`,
    steps: [
      limit,
      policy(withParams),
      binding({ paramRef }),
      { ...create, settleMs: 4 * settleMs, untilText },
      ...cleanUp,
    ],
  })),
  enforced(
    "about changes",
    {
      spec: validation("oldObject == null || object == null || object.data == oldObject.data", {
        message: "data is fixed",
      }),
    },
    create,
    patch("merge", `${configs}/one`, { data: { key: "other" } }),
    patch("merge", `${configs}/one`, { metadata: { labels: { c: "d" } } }),
    put(`${configs}/one`, object("one", { data: {} })),
    remove(`${configs}/one`),
  ),
  enforced(
    "about deletions",
    { spec: validation("request.operation != 'DELETE' || oldObject.metadata.name != 'one'") },
    create,
    remove(`${configs}/one`),
  ),
  ...broken.map(([name, spec]): Case => ({
    name: `policy object: ${name}`,
    steps: [policy(spec)],
  })),
  ...brokenBindings.map(([name, spec]): Case => ({
    name: `policy binding: ${name}`,
    steps: [binding(spec)],
  })),
];
