import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../index.ts";

const rbac = "/apis/rbac.authorization.k8s.io/v1";
const admin = { name: "admin", groups: ["system:masters"] };
const jane = { name: "jane", groups: ["developers", "system:authenticated"] };

let server: ApiServer;

beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  await create("/api/v1/namespaces", { metadata: { name: "other" } });
  await role("roles", "default", "pod-reader", [
    { apiGroups: [""], resources: ["pods", "pods/log"], verbs: ["get", "list", "watch"] },
    {
      apiGroups: [""],
      resources: ["configmaps"],
      resourceNames: ["shared"],
      verbs: ["get", "list"],
    },
    { apiGroups: ["apps"], resources: ["*/scale"], verbs: ["patch"] },
  ]);
  await role("clusterroles", "", "node-reader", [
    { apiGroups: [""], resources: ["nodes"], verbs: ["*"] },
    { nonResourceURLs: ["/metrics", "/debug/*"], verbs: ["get"] },
  ]);
  await role("clusterroles", "", "secrets", [
    { apiGroups: ["*"], resources: ["secrets"], verbs: ["get"] },
  ]);
  await bind(
    "rolebindings",
    "default",
    "readers",
    ["Role", "pod-reader"],
    [
      { kind: "Group", name: "developers" },
      { kind: "ServiceAccount", name: "robot" },
    ],
  );
  await bind(
    "clusterrolebindings",
    "",
    "nodes",
    ["ClusterRole", "node-reader"],
    [{ kind: "User", name: "jane" }],
  );
  await bind(
    "rolebindings",
    "other",
    "secrets",
    ["ClusterRole", "secrets"],
    [{ kind: "ServiceAccount", name: "robot", namespace: "default" }],
  );
  await bind("rolebindings", "other", "lost", ["Role", "nowhere"], [{ kind: "User", name: "joe" }]);
});
afterAll(() => server.close());

describe("a request is allowed by the roles that are bound to its user", () => {
  const robot = "system:serviceaccount:default:robot";
  const pods = "/api/v1/namespaces/default/pods";
  test.each([
    ["a list, by group", "jane", "GET", pods, 200],
    ["in another namespace", "jane", "GET", "/api/v1/namespaces/other/pods", 403],
    ["in all namespaces", "jane", "GET", "/api/v1/pods", 403],
    ["another verb", "jane", "DELETE", pods, 403],
    ["a subresource that is named", "jane", "GET", `${pods}/x/log`, 404],
    ["a subresource that is not", "jane", "GET", `${pods}/x/status`, 403],
    [
      "a subresource by pattern",
      "jane",
      "PATCH",
      "/apis/apps/v1/namespaces/default/deployments/x/scale",
      404,
    ],
    ["another resource", "jane", "GET", "/api/v1/namespaces/default/services", 403],
    ["a name", "jane", "GET", "/api/v1/namespaces/default/configmaps/shared", 404],
    ["another name", "jane", "GET", "/api/v1/namespaces/default/configmaps/own", 403],
    [
      "a list of the name",
      "jane",
      "GET",
      "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dshared",
      200,
    ],
    ["a list of more", "jane", "GET", "/api/v1/namespaces/default/configmaps", 403],
    [
      "a watch without the verb",
      "jane",
      "GET",
      "/api/v1/namespaces/default/configmaps?watch=1&fieldSelector=metadata.name%3Dshared",
      403,
    ],
    ["the whole cluster", "jane", "GET", "/api/v1/nodes", 200],
    ["any verb", "jane", "DELETE", "/api/v1/nodes/x", 404],
    ["a path", "jane", "GET", "/metrics", 404],
    ["a path by pattern", "jane", "GET", "/debug/pprof", 404],
    ["another path", "jane", "GET", "/logs", 403],
    ["discovery, with any credentials", "somebody", "GET", "/apis", 200],
    ["a ServiceAccount in its own namespace", robot, "GET", pods, 200],
    ["a ServiceAccount in another", robot, "GET", "/api/v1/namespaces/other/secrets/x", 404],
    [
      "a ServiceAccount where it is not bound",
      robot,
      "GET",
      "/api/v1/namespaces/default/secrets/x",
      403,
    ],
    ["its own Namespace", "jane", "GET", "/api/v1/namespaces/default", 403],
  ])("%s", async (_, name, method, path, status) => {
    const groups = name === "jane" ? jane.groups : ["system:authenticated"];
    expect((await send({ name, groups }, method, path)).status).toBe(status);
  });
});

describe("a refusal says who cannot do what, where", () => {
  test.each([
    [
      "GET",
      "/api/v1/namespaces/other/pods",
      'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "other"',
    ],
    [
      "GET",
      "/api/v1/namespaces/other/pods?watch=1",
      'pods is forbidden: User "jane" cannot watch resource "pods" in API group "" in the namespace "other"',
    ],
    [
      "DELETE",
      "/apis/apps/v1/namespaces/other/deployments",
      'deployments.apps is forbidden: User "jane" cannot deletecollection resource "deployments" in API group "apps" in the namespace "other"',
    ],
    [
      "PATCH",
      "/apis/apps/v1/namespaces/other/deployments/x/status",
      'deployments.apps "x" is forbidden: User "jane" cannot patch resource "deployments/status" in API group "apps" in the namespace "other"',
    ],
    [
      "GET",
      "/api/v1/namespaces/other",
      'namespaces "other" is forbidden: User "jane" cannot get resource "namespaces" in API group "" in the namespace "other"',
    ],
    [
      "PUT",
      "/apis/storage.k8s.io/v1/storageclasses/x",
      'storageclasses.storage.k8s.io "x" is forbidden: User "jane" cannot update resource "storageclasses" in API group "storage.k8s.io" at the cluster scope',
    ],
    ["POST", "/logs", 'forbidden: User "jane" cannot post path "/logs"'],
  ])("%s %s", async (method, path, message) => {
    const response = await send(jane, method, path);
    expect(await response.json()).toMatchObject({ code: 403, reason: "Forbidden", message });
  });

  test("and that a role is missing", async () => {
    const response = await send(
      { name: "joe", groups: [] },
      "GET",
      "/api/v1/namespaces/other/pods",
    );
    expect(await response.json()).toMatchObject({
      message:
        'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "other": RBAC: role.rbac.authorization.k8s.io "nowhere" not found',
    });
  });
});

describe("users cannot grant more than they have", () => {
  const owner = { name: "owner", groups: ["system:authenticated"] };
  const reading = { apiGroups: [""], resources: ["configmaps"], verbs: ["get"] };
  const bindings = `${rbac}/namespaces/default/rolebindings`;

  beforeAll(async () => {
    await role("roles", "default", "role-writer", [
      reading,
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["roles", "rolebindings"],
        verbs: ["*"],
      },
    ]);
    // Without escalate and bind, which `*` would be.
    await role("roles", "default", "role-writer-only", [
      reading,
      {
        apiGroups: ["rbac.authorization.k8s.io"],
        resources: ["roles", "rolebindings"],
        verbs: ["get", "create", "update", "patch"],
      },
    ]);
    await bind(
      "rolebindings",
      "default",
      "owner",
      ["Role", "role-writer-only"],
      [{ kind: "User", name: "owner" }],
    );
    await bind(
      "rolebindings",
      "default",
      "boss",
      ["Role", "role-writer"],
      [{ kind: "User", name: "boss" }],
    );
  });

  test.each([
    ["a role of what they have", "owner", [reading], 201],
    ["a role of more", "owner", [{ ...reading, verbs: ["get", "delete", "list"] }], 403],
    ["a role of more, with escalate", "boss", [{ ...reading, verbs: ["*"] }], 201],
  ])("%s", async (_, name, rules, status) => {
    const response = await send(
      { name, groups: [] },
      "POST",
      `${rbac}/namespaces/default/roles?dryRun=All`,
      {
        metadata: { name: "new" },
        rules,
      },
    );
    expect(response.status).toBe(status);
    if (status === 403) {
      expect(await response.json()).toMatchObject({
        message:
          'roles.rbac.authorization.k8s.io "new" is forbidden: user "owner" (groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["configmaps"], Verbs:["delete" "list"]}',
      });
    }
  });

  test.each([
    ["a binding to a role of less", "owner", "Role", "role-writer-only", 201],
    ["a binding to a role of more", "owner", "ClusterRole", "cluster-admin", 403],
    ["a binding to a role of more, with bind", "boss", "Role", "pod-reader", 201],
    ["a binding to a role that is not there", "owner", "Role", "nowhere", 404],
  ])("%s", async (_, name, kind, to, status) => {
    const response = await send({ name, groups: [] }, "POST", `${bindings}?dryRun=All`, {
      metadata: { name: "new" },
      roleRef: { kind, name: to },
      subjects: [{ kind: "User", name: "friend" }],
    });
    expect(response.status).toBe(status);
  });

  test("the rights of a role cannot be widened by an update either", async () => {
    await role("roles", "default", "small", [reading]);
    const path = `${rbac}/namespaces/default/roles/small`;
    const wider = { rules: [{ ...reading, resources: ["secrets"] }] };
    expect((await send(owner, "PATCH", path, wider)).status).toBe(403);
    expect((await send(admin, "PATCH", path, wider)).status).toBe(200);
  });
});

test("an aggregating ClusterRole has the rules of those that it selects, also when they change", async () => {
  const rule = { apiGroups: ["example.com"], resources: ["widgets"], verbs: ["get"] };
  const rulesOfView = async () => {
    const { rules } = (await (await send(admin, "GET", `${rbac}/clusterroles/view`)).json()) as {
      rules: unknown[];
    };
    return rules;
  };
  expect(await rulesOfView()).not.toContainEqual(rule);
  await create(`${rbac}/clusterroles`, {
    metadata: {
      name: "widgets-view",
      labels: { "rbac.authorization.k8s.io/aggregate-to-view": "true" },
    },
    rules: [rule],
  });
  await expect.poll(rulesOfView).toContainEqual(rule);
  await send(admin, "DELETE", `${rbac}/clusterroles/widgets-view`);
  await expect.poll(rulesOfView).not.toContainEqual(rule);
});

function role(plural: string, namespace: string, name: string, rules: object[]): Promise<void> {
  return create(collection(plural, namespace), { metadata: { name }, rules });
}

function bind(
  plural: string,
  namespace: string,
  name: string,
  [kind, to]: [string, string],
  subjects: object[],
): Promise<void> {
  return create(collection(plural, namespace), {
    metadata: { name },
    roleRef: { kind, name: to },
    subjects,
  });
}

function collection(plural: string, namespace: string): string {
  return namespace ? `${rbac}/namespaces/${namespace}/${plural}` : `${rbac}/${plural}`;
}

async function create(path: string, body: object): Promise<void> {
  const response = await send(admin, "POST", path, body);
  expect([response.status, response.ok ? "" : await response.text()]).toEqual([201, ""]);
}

function send(
  user: { name: string; groups: string[] },
  method: string,
  path: string,
  body: object | undefined = method === "PATCH" ? {} : undefined,
): Promise<Response> {
  const contentType = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  return server.transport(user)(
    new Request(`http://kubernetes.internal${path}`, {
      method,
      headers: { "content-type": contentType },
      ...(body && { body: JSON.stringify(body) }),
    }),
  );
}
