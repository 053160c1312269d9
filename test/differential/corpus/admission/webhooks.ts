import { type Case, at, get, patch, post, put, remove, type Step } from "../../step.ts";
import { type Answer, clientConfig } from "./webhook-server.ts";

const root = "/apis/admissionregistration.k8s.io/v1";
const allowed: Answer = { response: { allowed: true } };
const patchOf = (operations: unknown) => Buffer.from(JSON.stringify(operations)).toString("base64");
const patching = (...operations: object[]): Answer => ({
  response: { allowed: true, patchType: "JSONPatch", patch: patchOf(operations) },
});
const label = (name: string, value: string) =>
  patching({ op: "add", path: `/metadata/labels/${name}`, value });

interface Hook {
  answer?: Answer;
  [field: string]: unknown;
}

/** Cases run in parallel: a configuration is for the namespace of its case alone. */
function configuration(kind: "Mutating" | "Validating", hooks: Hook[]): Step {
  const webhooks = hooks.map(({ answer = allowed, ...rest }, index) => ({
    name: `hook-${index}.spry.invalid`,
    clientConfig: clientConfig(answer),
    rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"], operations: ["*"] }],
    sideEffects: "None",
    admissionReviewVersions: ["v1"],
    namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "$ns" } },
    objectSelector: { matchExpressions: [{ key: "probe", operator: "DoesNotExist" }] },
    ...rest,
  }));
  return post(`${root}/${kind.toLowerCase()}webhookconfigurations`, {
    metadata: { name: "$ns-hooks" },
    webhooks,
  });
}

const config = at("v1", "configmaps");
const object = (name = "one", rest: object = {}) => ({
  metadata: { name, labels: { a: "b" } },
  data: { key: "value" },
  ...rest,
});
const cleanUp = (kind: "mutating" | "validating") =>
  remove(`${root}/${kind}webhookconfigurations/$ns-hooks`);
/** Configurations reach the admission of a real server a moment after they are written: a webhook of its own tells. */
function during(
  kind: "Mutating" | "Validating",
  name: string,
  hooks: Hook[],
  ...steps: Step[]
): Case {
  const waiting: Hook = {
    answer: { response: { allowed: false, status: { message: "in force" } } },
    objectSelector: { matchLabels: { probe: "yes" } },
  };
  const probe = post(
    `${config}?dryRun=All`,
    object("probe", { metadata: { name: "probe", labels: { probe: "yes" } } }),
  );
  return {
    name: `webhook ${name}`,
    steps: [
      configuration(kind, [...hooks, waiting]),
      { ...probe, until: 400 },
      ...steps,
      cleanUp(kind.toLowerCase() as "mutating" | "validating"),
    ],
  };
}

const refusing = (status?: object): Answer => ({
  response: { allowed: false, ...(status && { status }) },
});
const create = post(config, object());
const answers: [string, Answer, ("Mutating" | "Validating")?][] = [
  ["refuses without a word", refusing()],
  ["refuses with a message", refusing({ message: "not like this" })],
  ["refuses with a reason", refusing({ reason: "Invalid" })],
  [
    "refuses with everything",
    refusing({
      code: 422,
      reason: "Invalid",
      message: "no",
      details: { kind: "x", causes: [{ reason: "a", message: "b", field: "c" }] },
    }),
  ],
  ["refuses with a success", refusing({ code: 200, status: "Success", message: "no" })],
  ["warns", { response: { allowed: true, warnings: ["one", "two", "one", ""] } }],
  ["warns and refuses", { response: { allowed: false, warnings: ["careful"] } }],
  [
    "warns at length",
    { response: { allowed: true, warnings: ["x".repeat(300), "y".repeat(4000)] } },
  ],
  ["answers with an error", { status: 500, text: "broken" }],
  ["answers that nothing is there", { status: 404, text: "no" }],
  [
    "answers with a status",
    {
      status: 503,
      text: '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"told"}',
    },
  ],
  ["answers without a response", { raw: { response: null } }],
  ["answers another uid", { response: { allowed: true, uid: "x" } }],
  [
    "answers in another version",
    { response: { allowed: true }, raw: { apiVersion: "admission.k8s.io/v9" } },
  ],
  ["answers with another kind", { response: { allowed: true }, raw: { kind: "Other" } }],
  ["patches though validating", patching({ op: "add", path: "/data/b", value: "2" })],
  ["patches nothing", patching(), "Mutating"],
  ["patches", patching({ op: "add", path: "/data/b", value: "2" }), "Mutating"],
  [
    "patches what is absent",
    patching({ op: "replace", path: "/data/absent", value: "2" }),
    "Mutating",
  ],
  ["removes what is absent", patching({ op: "remove", path: "/data/absent" }), "Mutating"],
  ["adds below what is absent", patching({ op: "add", path: "/absent/x", value: "2" }), "Mutating"],
  ["tests in vain", patching({ op: "test", path: "/data/key", value: "2" }), "Mutating"],
  ["patches a wrong type", patching({ op: "add", path: "/data/b", value: 2 }), "Mutating"],
  ["patches an unknown field", patching({ op: "add", path: "/unknown", value: 2 }), "Mutating"],
  ["patches without a type", { response: { allowed: true, patch: patchOf([]) } }, "Mutating"],
  [
    "has a type without a patch",
    { response: { allowed: true, patchType: "JSONPatch" } },
    "Mutating",
  ],
  [
    "has an unknown type of patch",
    {
      response: {
        allowed: true,
        patchType: "Other",
        patch: patchOf([{ op: "add", path: "/data/b", value: "2" }]),
      },
    },
    "Mutating",
  ],
  [
    "patches with an invalid result",
    patching({ op: "add", path: "/data/a~1b", value: "2" }),
    "Mutating",
  ],
];

const reachable: [string, object][] = [
  ["nothing listens", { clientConfig: { url: "https://127.0.0.1:1/x" } }],
  [
    "nothing listens, ignored",
    { clientConfig: { url: "https://127.0.0.1:1/x" }, failurePolicy: "Ignore" },
  ],
  ["the authority is unknown", { clientConfig: { url: clientConfig(allowed).url } }],
  [
    "the service is absent",
    { clientConfig: { service: { namespace: "$ns", name: "absent", path: "/x" } } },
  ],
  ["it takes too long", { answer: { ...allowed, delayMs: 1600 }, timeoutSeconds: 1 }],
];

const conditions: [string, string, string?][] = [
  ["that holds", "object.metadata.name == 'one'"],
  ["that does not", "object.metadata.name == 'other'"],
  ["that fails", "object.spec.x == 1"],
  ["that fails, ignored", "object.spec.x == 1", "Ignore"],
  [
    "about the request",
    "request.operation == 'CREATE' && request.resource.resource == 'configmaps' && request.kind.kind == 'ConfigMap' && request.namespace == '$ns' && request.name == 'one' && !request.dryRun",
  ],
  ["about the old object", "oldObject == null"],
  ["about the user", "'system:masters' in request.userInfo.groups"],
];

const broken: [string, Record<string, unknown>][] = [
  ["name", { name: "short" }],
  ["no name", { name: "" }],
  ["capital name", { name: "A.b.c" }],
  ["failurePolicy", { failurePolicy: "X" }],
  ["matchPolicy", { matchPolicy: "X" }],
  ["sideEffects", { sideEffects: "Some" }],
  ["no sideEffects", { sideEffects: undefined }],
  ["timeoutSeconds", { timeoutSeconds: 31 }],
  ["no versions", { admissionReviewVersions: [] }],
  ["versions", { admissionReviewVersions: ["v2"] }],
  ["versions twice", { admissionReviewVersions: ["v1", "v1"] }],
  ["no clientConfig", { clientConfig: {} }],
  ["two ways", { clientConfig: { url: "https://a/", service: { name: "a", namespace: "b" } } }],
  ["http", { clientConfig: { url: "http://a/" } }],
  ["query", { clientConfig: { url: "https://a/?b=c" } }],
  ["fragment", { clientConfig: { url: "https://a/#b" } }],
  ["user", { clientConfig: { url: "https://u@a/" } }],
  ["port", { clientConfig: { service: { name: "a", namespace: "b", port: 70000 } } }],
  ["path", { clientConfig: { service: { name: "a", namespace: "b", path: "x/A" } } }],
  ["no operations", { rules: [{ apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }] }],
  [
    "operations",
    {
      rules: [
        {
          operations: ["*", "X"],
          apiGroups: ["*", ""],
          apiVersions: ["*", "v1"],
          resources: ["pods", "*"],
        },
      ],
    },
  ],
  ["empty rule", { rules: [{}] }],
  [
    "resources",
    {
      rules: [
        { operations: ["CREATE"], apiGroups: [""], apiVersions: [""], resources: ["*/*", "pods"] },
      ],
    },
  ],
  [
    "scope",
    {
      rules: [
        {
          operations: ["CREATE"],
          apiGroups: [""],
          apiVersions: ["v1"],
          resources: ["pods"],
          scope: "X",
        },
      ],
    },
  ],
  ["namespaceSelector", { namespaceSelector: { matchExpressions: [{ key: "a", operator: "X" }] } }],
  ["objectSelector", { objectSelector: { matchExpressions: [{ key: "a", operator: "In" }] } }],
  ["condition without name", { matchConditions: [{ name: "", expression: "true" }] }],
  ["condition without text", { matchConditions: [{ name: "a", expression: "" }] }],
  [
    "conditions twice",
    {
      matchConditions: [
        { name: "a", expression: "true" },
        { name: "a", expression: "true" },
      ],
    },
  ],
  ["condition name", { matchConditions: [{ name: "a b", expression: "true" }] }],
];

const autoscalerRule = (version: string) => [
  {
    apiGroups: ["autoscaling"],
    apiVersions: [version],
    resources: ["horizontalpodautoscalers"],
    operations: ["CREATE"],
  },
];
const autoscaler = post(at("autoscaling/v2", "horizontalpodautoscalers"), {
  apiVersion: "autoscaling/v2",
  kind: "HorizontalPodAutoscaler",
  metadata: { name: "one" },
  spec: {
    scaleTargetRef: { apiVersion: "apps/v1", kind: "Deployment", name: "x" },
    maxReplicas: 2,
  },
});
const echo: Hook = { answer: { echo: true } };

export const webhooks: Case[] = [
  ...answers.map(([name, answer, kind = "Validating"]) =>
    during(kind, `that ${name}`, [{ answer }], create, get(`${config}/one`)),
  ),
  ...reachable.map(([name, hook]) => during("Validating", `where ${name}`, [hook as Hook], create)),
  ...conditions.map(([name, expression, failurePolicy = "Fail"]) =>
    during(
      "Validating",
      `with a condition ${name}`,
      [{ answer: refusing(), failurePolicy, matchConditions: [{ name: "c", expression }] }],
      create,
    ),
  ),
  ...(["Mutating", "Validating"] as const).map((kind) =>
    during(
      kind,
      `sees the request (${kind})`,
      [{ ...echo, objectSelector: { matchLabels: { echo: "yes" } } }],
      post(config, object("one", { metadata: { name: "one", labels: { echo: "yes" } } })),
      post(config, object("two")),
      patch("merge", `${config}/two`, { metadata: { labels: { echo: "yes" } } }),
      ...(kind === "Validating"
        ? [
            put(
              `${config}/two`,
              object("two", { metadata: { name: "two", labels: { echo: "yes" } } }),
            ),
          ]
        : []),
      post(
        `${config}?dryRun=All`,
        object("one", { metadata: { name: "one", labels: { echo: "yes" } } }),
      ),
    ),
  ),
  during(
    "Validating",
    "sees a deletion",
    [{ ...echo, matchConditions: [{ name: "a", expression: "request.operation == 'DELETE'" }] }],
    create,
    remove(`${config}/one`),
    remove(`${config}/one`, { gracePeriodSeconds: 3 }),
  ),
  during(
    "Validating",
    "of an exact version",
    [{ ...echo, rules: autoscalerRule("v1"), matchPolicy: "Exact" }],
    autoscaler,
  ),
  during(
    "Validating",
    "of an equivalent version",
    [{ ...echo, rules: autoscalerRule("v1"), matchPolicy: "Equivalent" }],
    autoscaler,
  ),
  during(
    "Mutating",
    "that patches an equivalent version",
    [
      {
        answer: patching({ op: "replace", path: "/spec/maxReplicas", value: 7 }),
        rules: autoscalerRule("v1"),
      },
    ],
    autoscaler,
  ),
  during(
    "Mutating",
    "called again",
    [
      {
        answer: label("first", "x"),
        reinvocationPolicy: "IfNeeded",
        matchConditions: [
          {
            name: "a",
            expression: "!has(object.metadata.labels.first) || has(object.metadata.labels.second)",
          },
        ],
      },
      { answer: label("second", "x") },
    ],
    create,
  ),
  during(
    "Mutating",
    "called again sees the change",
    [
      {
        answer: { echo: true },
        reinvocationPolicy: "IfNeeded",
        matchConditions: [{ name: "a", expression: "'second' in object.metadata.labels" }],
      },
      { answer: label("second", "x") },
    ],
    create,
  ),
  during(
    "Mutating",
    "whose order counts",
    [{ answer: label("x", "1") }, { answer: label("x", "2") }],
    create,
  ),
  ...broken.map(([name, hook]): Case => ({
    name: `webhook configuration: ${name}`,
    steps: [
      configuration("Mutating", [hook as Hook]),
      configuration("Validating", [hook as Hook]),
      cleanUp("mutating"),
      cleanUp("validating"),
    ],
  })),
  {
    name: "webhook configuration: names twice, defaults",
    steps: [
      configuration("Validating", [{ name: "a.b.c" }, { name: "a.b.c" }]),
      configuration("Mutating", [{ clientConfig: { service: { name: "a", namespace: "b" } } }]),
      cleanUp("mutating"),
    ],
  },
];
