import { expect, test } from "vitest";
import { missingSource } from "./missing-source.ts";

const spec = {
  runtime: "nodejs24",
  source: {},
  env: [
    { name: "A", valueFrom: { secretKeyRef: { name: "db", key: "user" } } },
    { name: "B", valueFrom: { secretKeyRef: { name: "db", key: "password" } } },
    { name: "C", valueFrom: { configMapKeyRef: { name: "cfg", key: "level" } } },
    { name: "D", valueFrom: { secretKeyRef: { name: "other", key: "x" } } },
    { name: "E", value: "text" },
  ],
};
const failed = "Deployment f failed: container function: CreateContainerConfigError: ";

test.each([
  ['secret "db" not found', "spry secrets set db user=VALUE password=VALUE makes it"],
  ['secret "mounted" not found', "spry secrets set mounted KEY=VALUE makes it"],
  ["couldn't find key user in Secret default/db", "spry secrets set db user=VALUE adds it"],
  ['configmap "cfg" not found', "kubectl create configmap cfg --from-literal=level=VALUE makes it"],
  [
    "couldn't find key level in ConfigMap default/cfg",
    `kubectl patch configmap cfg -p '{"data":{"level":"VALUE"}}' adds it`,
  ],
])("%s is answered with the command that mends it", (cause, wayOut) => {
  expect(missingSource(failed + cause, { spec, namespace: "default" })).toEqual([wayOut]);
});

test("in another namespace the command says which", () => {
  const [secret] = missingSource(`${failed}secret "other" not found`, { spec, namespace: "team" });
  expect(secret).toBe("spry secrets set other x=VALUE -n team makes it");
  const [config] = missingSource(`${failed}configmap "cfg" not found`, { spec, namespace: "team" });
  expect(config).toBe("kubectl create configmap cfg --from-literal=level=VALUE -n team makes it");
});

test("other failures have their own words", () => {
  expect(missingSource("Deployment f failed: OOMKilled", { spec, namespace: "default" })).toEqual(
    [],
  );
});
