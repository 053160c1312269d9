import { KubeClient, type Resource, resources, type UnknownObject } from "@spry/kube";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "../../index.ts";

const policies: Resource = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  kind: "ValidatingAdmissionPolicy",
  plural: "validatingadmissionpolicies",
  namespaced: false,
};
const policyBindings: Resource = {
  ...policies,
  kind: "ValidatingAdmissionPolicyBinding",
  plural: "validatingadmissionpolicybindings",
};
const namespace = "default";

let server: ApiServer;
let client: KubeClient;

beforeEach(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
  client = new KubeClient(server.transport());
});
afterEach(() => server.close());

async function enforce(spec: object): Promise<void> {
  const rule = {
    apiGroups: [""],
    apiVersions: ["v1"],
    resources: ["configmaps"],
    operations: ["CREATE"],
  };
  const whole = { matchConstraints: { resourceRules: [rule] }, ...spec };
  const bound = { policyName: "policy", validationActions: ["Deny"] };
  await client.create(policies, { metadata: { name: "policy" }, spec: whole } as UnknownObject);
  const binding = { metadata: { name: "binding" }, spec: bound };
  await client.create(policyBindings, binding);
}

const create = (data: Record<string, string> = {}) =>
  client.create(resources.configMaps, { metadata: { namespace, generateName: "c-" }, data });

test("a policy speaks in its own words, with its own reason", async () => {
  const expression = "has(object.data) && 'owner' in object.data";
  const messageExpression = "'no owner in ' + namespaceObject.metadata.name";
  await enforce({ validations: [{ expression, messageExpression, reason: "Forbidden" }] });
  await expect(create({ owner: "me" })).resolves.toBeDefined();
  const refused = create();
  await expect(refused).rejects.toMatchObject({ code: 403 });
  await expect(refused).rejects.toThrow(
    "is forbidden: ValidatingAdmissionPolicy 'policy' with binding 'binding' denied request: no owner in default",
  );
});

test("an expression that would take too long is not evaluated", async () => {
  const nested = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c)))";
  await enforce({ validations: [{ expression: nested }] });
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`k${index}`, "v"]));
  await expect(create(many)).rejects.toThrow(
    "resulted in error: operation cancelled: actual cost limit exceeded",
  );
});

test("a policy without a binding is not in force", async () => {
  await enforce({ validations: [{ expression: "false" }] });
  await client.delete(policyBindings, { name: "binding" });
  await expect(create()).resolves.toBeDefined();
});
