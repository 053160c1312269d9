/** Who may do what: roles, refusals, questions about access, tokens, ServiceAccounts of Pods. */
import { at, type Case, get, patch, post, put, remove, rootOf, type Step } from "../step.ts";

const rbac = "rbac.authorization.k8s.io/v1";
const authorization = "/apis/authorization.k8s.io/v1";
const authentication = "/apis/authentication.k8s.io/v1";
const roles = at(rbac, "roles");
const bindings = at(rbac, "rolebindings");

/** The step as another user: both servers are told by an administrator who may be anybody. */
function as(user: string, step: Step, more: Record<string, string> = {}): Step {
  return { ...step, headers: { ...step.headers, "impersonate-user": user, ...more } };
}

const role = (name: string, rules: object[], more: object = {}) => ({
  metadata: { name },
  rules,
  ...more,
});
const bindingTo = (name: string, kind: string, to: string, subjects: object[]) => ({
  metadata: { name },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: to },
  subjects,
});
const user = (name: string) => ({ kind: "User", apiGroup: "rbac.authorization.k8s.io", name });
const reading = { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list"] };
const writingRoles = {
  apiGroups: ["rbac.authorization.k8s.io"],
  resources: ["roles", "rolebindings"],
  verbs: ["get", "create", "update", "patch"],
};

const builtIn: Case[] = ["clusterroles", "clusterrolebindings"].map((plural) => ({
  name: `built-in ${plural}`,
  steps: [
    "cluster-admin",
    ...["admin", "edit", "view"].flatMap((name) =>
      plural === "clusterroles" ? [`system:aggregate-to-${name}`] : [],
    ),
    "system:basic-user",
    "system:discovery",
    "system:public-info-viewer",
    "system:service-account-issuer-discovery",
    "system:node",
    "system:node-proxier",
    "system:monitoring",
    "system:kube-scheduler",
    "system:controller:deployment-controller",
    "system:controller:job-controller",
  ].map((name) => get(`${rootOf(rbac)}/${plural}/${name}`)),
}));

const refusals: Case = {
  name: "refusals of a user without roles",
  steps: [
    get(at("v1", "pods")),
    get(`${at("v1", "pods")}?watch=true`),
    get(`${at("v1", "pods")}?fieldSelector=metadata.name%3Dx`),
    get("/api/v1/pods"),
    get("/api/v1/nodes"),
    get("/api/v1/nodes/x"),
    get("/api/v1/namespaces/$ns"),
    get(`${at("v1", "pods")}/x/log`),
    get(at("example.com/v1", "widgets")),
    get("/metrics"),
    get("/logs/x"),
    post(at("v1", "configmaps"), { metadata: { name: "x" } }),
    post(`${at("v1", "pods")}/x/eviction`, {}),
    post(`${at("v1", "serviceaccounts")}/default/token`, {}),
    post("/api/v1/namespaces", { metadata: { name: "x" } }),
    put(`${at("apps/v1", "deployments")}/x/scale`, {}),
    patch("merge", `${at("apps/v1", "deployments")}/x`, {}),
    remove(`${at("v1", "secrets")}/x`),
    remove(at("v1", "secrets")),
    post(`${authentication}/tokenreviews`, { spec: { token: "x" } }),
    post(`${authorization}/subjectaccessreviews`, { spec: { user: "x" } }),
    get("/healthz"),
  ].map((step) => as("jane", step)),
};

const granted: Case = {
  name: "what a role grants",
  steps: [
    post(
      roles,
      role("reader", [
        reading,
        {
          apiGroups: [""],
          resources: ["secrets"],
          resourceNames: ["mine"],
          verbs: ["get", "list"],
        },
        { apiGroups: ["apps"], resources: ["*/scale"], verbs: ["get"] },
      ]),
    ),
    post(bindings, bindingTo("readers", "Role", "reader", [user("jane")])),
    post(bindings, bindingTo("lost", "Role", "nowhere", [user("jane"), user("joe")])),
    ...[
      get(at("v1", "configmaps")),
      get(`${at("v1", "configmaps")}?watch=true`),
      get(`${at("v1", "configmaps")}/x`),
      get(`${at("v1", "secrets")}/mine`),
      get(`${at("v1", "secrets")}/other`),
      get(`${at("v1", "secrets")}?fieldSelector=metadata.name%3Dmine`),
      get(at("v1", "secrets")),
      get(`${at("apps/v1", "deployments")}/x/scale`),
      get(`${at("apps/v1", "deployments")}/x/status`),
    ].map((step) => as("jane", step)),
    as("joe", get(at("v1", "configmaps"))),
    as("system:serviceaccount:$ns:robot", get(at("v1", "configmaps"))),
    patch("merge", `${bindings}/readers`, {
      subjects: [{ kind: "ServiceAccount", name: "robot" }],
    }),
    as("system:serviceaccount:$ns:robot", get(at("v1", "configmaps")), {
      accept: "application/json",
    }),
    as("jane", get(`${at("v1", "configmaps")}/x`)),
    remove(`${bindings}/readers`),
  ],
};

const escalation: Case = {
  name: "rights that are given away",
  steps: [
    post(roles, role("writer", [reading, writingRoles])),
    post(bindings, bindingTo("writers", "Role", "writer", [user("owner")])),
    ...[
      post(roles, role("same", [reading])),
      post(roles, role("more", [{ ...reading, verbs: ["get", "delete", "create"] }])),
      post(
        roles,
        role("names", [{ ...reading, resourceNames: ["a", "b"], verbs: ["get", "watch"] }]),
      ),
      post(roles, role("wild", [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }])),
      post(bindings, bindingTo("same", "Role", "same", [user("friend")])),
      post(bindings, bindingTo("all", "ClusterRole", "cluster-admin", [user("friend")])),
      post(bindings, bindingTo("none", "Role", "nowhere", [user("friend")])),
      patch("merge", `${roles}/same`, { rules: [{ ...reading, resources: ["secrets"] }] }),
      patch("merge", `${roles}/same`, { metadata: { labels: { a: "b" } } }),
      post(`${rootOf(rbac)}/clusterroles`, role("x", [reading])),
    ].map((step) => as("owner", step)),
    patch("merge", `${bindings}/writers`, { roleRef: { name: "same" } }),
    post(
      roles,
      role("bound", [{ ...writingRoles, resources: ["roles"], verbs: ["bind", "escalate"] }]),
    ),
    post(bindings, bindingTo("bound", "Role", "bound", [user("owner")])),
    as("owner", post(roles, role("wild", [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }]))),
    as("owner", post(bindings, bindingTo("wild", "Role", "wild", [user("owner")]))),
  ],
};

const clusterWide: Case = {
  name: "validation of ClusterRoles",
  steps: [
    ...[
      role("$ns", [
        { nonResourceURLs: ["/x"], verbs: ["get"], resources: ["pods"], apiGroups: [""] },
      ]),
      role("$ns", [{ nonResourceURLs: ["/x"], verbs: [] }]),
      role("$ns", [], { aggregationRule: {} }),
      role("$ns", [], { aggregationRule: { clusterRoleSelectors: [] } }),
      role("a/b", [reading]),
      role("$ns", [{ nonResourceURLs: ["/x"], verbs: ["get"] }]),
    ].map((object) => post(`${rootOf(rbac)}/clusterroles?dryRun=All`, object)),
    ...[
      bindingTo("$ns", "Role", "x", [user("x")]),
      bindingTo("$ns", "ClusterRole", "x", [{ kind: "ServiceAccount", name: "x" }]),
      bindingTo("$ns", "ClusterRole", "x", [
        { kind: "User", name: "x" },
        { kind: "X", name: "x" },
      ]),
      bindingTo("$ns", "ClusterRole", "a/b", []),
    ].map((object) => post(`${rootOf(rbac)}/clusterrolebindings?dryRun=All`, object)),
  ],
};

const attributes = { namespace: "$ns", verb: "list", resource: "configmaps" };
const questions: Case = {
  name: "questions about access",
  steps: [
    post(roles, role("reader", [reading])),
    post(bindings, bindingTo("readers", "Role", "reader", [user("jane")])),
    ...[
      { user: "jane", resourceAttributes: attributes },
      { user: "jane", resourceAttributes: { ...attributes, verb: "delete" } },
      {
        user: "jane",
        resourceAttributes: { ...attributes, group: "x", name: "y", subresource: "z" },
      },
      { user: "joe", groups: ["system:masters"], resourceAttributes: attributes },
      { groups: ["system:authenticated"], nonResourceAttributes: { path: "/apis", verb: "get" } },
      { user: "jane", nonResourceAttributes: { path: "/logs", verb: "get" } },
      { user: "jane" },
      { resourceAttributes: attributes },
      { user: "jane", resourceAttributes: attributes, nonResourceAttributes: { path: "/" } },
      { user: 5 },
    ].map((spec) => post(`${authorization}/subjectaccessreviews`, { spec })),
    as(
      "jane",
      post(`${authorization}/selfsubjectaccessreviews`, {
        spec: { resourceAttributes: attributes },
      }),
    ),
    as("jane", post(`${authorization}/selfsubjectaccessreviews`, { spec: {} })),
    as("jane", post(`${authorization}/selfsubjectrulesreviews`, { spec: {} })),
    as("jane", post(`${authentication}/selfsubjectreviews`, {}), { "impersonate-uid": "7" }),
    ...[
      { user: "jane", resourceAttributes: attributes },
      { user: "jane", resourceAttributes: { ...attributes, namespace: "other" } },
      { user: "jane", nonResourceAttributes: { path: "/", verb: "get" } },
    ].map((spec) =>
      post(at("authorization.k8s.io/v1", "localsubjectaccessreviews"), {
        metadata: { namespace: "$ns" },
        spec,
      }),
    ),
    get(`${authorization}/subjectaccessreviews`),
    get(authorization),
    get(authentication),
  ],
};

const impersonation: Case = {
  name: "impersonation",
  steps: [
    as("jane", as("joe", get("/api/v1/nodes"))),
    { ...get("/api/v1/nodes"), headers: { "impersonate-group": "x" } },
    as("system:anonymous", post(`${authentication}/selfsubjectreviews`, {})),
    as("system:anonymous", get("/healthz")),
    as("system:serviceaccount:$ns:robot", get("/api/v1/nodes")),
    as("system:serviceaccount:$ns:robot", get(at("v1", "pods"))),
    as("jane", get("/api/v1/nodes"), { "impersonate-group": "system:masters" }),
  ],
};

const tokens: Case = {
  name: "tokens",
  steps: [
    post(`${at("v1", "serviceaccounts")}/default/token`, {}),
    post(`${at("v1", "serviceaccounts")}/default/token`, { spec: { expirationSeconds: 60 } }),
    post(`${at("v1", "serviceaccounts")}/default/token`, { spec: { expirationSeconds: 2 ** 33 } }),
    post(`${at("v1", "serviceaccounts")}/default/token`, {
      spec: { expirationSeconds: 31 * 365 * 24 * 3600 },
    }),
    post(`${at("v1", "serviceaccounts")}/default/token`, {
      spec: { audiences: ["a", "b"], expirationSeconds: 700 },
    }),
    post(`${at("v1", "serviceaccounts")}/nobody/token`, {}),
    post(`${at("v1", "serviceaccounts")}/default/token`, { metadata: { name: "other" } }),
    post(`${at("v1", "serviceaccounts")}/default/token`, { metadata: { uid: "x" } }),
    ...[
      { kind: "Pod", apiVersion: "v1", name: "nowhere" },
      { kind: "Secret", apiVersion: "v1", name: "nowhere" },
      { kind: "Deployment", apiVersion: "apps/v1", name: "x" },
      { kind: "ConfigMap", apiVersion: "v1", name: "x" },
    ].map((boundObjectRef) =>
      post(`${at("v1", "serviceaccounts")}/default/token`, { spec: { boundObjectRef } }),
    ),
    post(`${authentication}/tokenreviews`, { spec: {} }),
    post(`${authentication}/tokenreviews`, { spec: { token: "x.y.z" } }),
    post(at("v1", "secrets"), {
      metadata: { name: "x" },
      type: "kubernetes.io/service-account-token",
    }),
  ],
};

const container = { name: "main", image: "a" };
const accountsOfPods: Case = {
  name: "ServiceAccounts of Pods",
  steps: [
    post(at("v1", "pods"), {
      metadata: { name: "a" },
      spec: { serviceAccountName: "nobody", containers: [container] },
    }),
    post(at("v1", "serviceaccounts"), {
      metadata: { name: "puller" },
      imagePullSecrets: [{ name: "one" }],
      automountServiceAccountToken: false,
    }),
    post(at("v1", "pods"), {
      metadata: { name: "b" },
      spec: { serviceAccountName: "puller", containers: [container] },
    }),
    post(at("v1", "pods"), {
      metadata: { name: "c" },
      spec: {
        serviceAccountName: "puller",
        automountServiceAccountToken: true,
        volumes: [{ name: "kube-api-access-mine", emptyDir: {} }],
        initContainers: [{ ...container, name: "init" }],
        containers: [
          container,
          {
            ...container,
            name: "own",
            volumeMounts: [
              {
                name: "kube-api-access-mine",
                mountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
              },
            ],
          },
        ],
      },
    }),
  ],
};

export const access: Case[] = [
  ...builtIn,
  refusals,
  granted,
  escalation,
  clusterWide,
  questions,
  impersonation,
  tokens,
  accountsOfPods,
];
