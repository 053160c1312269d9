/** The main job, as a person with kubectl lives it, on either engine. */
import { describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest, pause } from "../support/platform.ts";

const platform = enginePlatform();

const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

describe("a Function's life", () => {
  test("apply, wait, call", async () => {
    await platform.k("apply -f -", functionManifest("life", answering("one")));
    await platform.k("wait --for=condition=Running function/life --timeout=60s");
    expect(await platform.call("life.default")).toMatchObject({ status: 200, body: "one" });
  });

  test("kubectl get shows the contract's columns", async () => {
    const [header, row] = (await platform.k("get function life")).split("\n");
    expect(header?.split(/\s+/)).toEqual(
      expect.arrayContaining([
        "NAME",
        "CONFIGURED",
        "BUILT",
        "RUNNING",
        "RUNTIME",
        "VERSION",
        "AGE",
      ]),
    );
    expect(row?.split(/\s+/).slice(0, 6)).toEqual([
      "life",
      "True",
      "True",
      "True",
      "nodejs24",
      "1",
    ]);
  });

  test("every step of the architecture left its object", async () => {
    const labels = "-l serverless.kyma-project.io/function-name=life";
    const objects = await platform.k(
      `get configmaps,deployments,services,pods,endpointslices ${labels} -o name`,
    );
    for (const kind of ["configmap/", "deployment.apps/", "service/life", "pod/"])
      expect(objects).toContain(kind);
    const image = await platform.k(
      `get deployments ${labels} -o jsonpath={.items[0].spec.template.spec.containers[0].image}`,
    );
    expect(image).toMatch(/\/default\/life@sha256:[0-9a-f]{64}$/);
    const selector = JSON.parse(await platform.k("get service life -o jsonpath={.spec.selector}"));
    expect(Object.keys(selector).sort()).toEqual([
      "serverless.kyma-project.io/function-name",
      "serverless.kyma-project.io/managed-by",
      "serverless.kyma-project.io/resource",
      "serverless.kyma-project.io/uuid",
    ]);
  });

  test("describe tells the conditions and the events", async () => {
    const text = await platform.k("describe function life");
    for (const word of [
      "ConfigurationReady",
      "BuildReady",
      "Running",
      "DeploymentReady",
      "Events:",
      "JobFinished",
    ])
      expect(text).toContain(word);
  });

  test("logs come from its Pods", async () => {
    const source = `module.exports = { main() { console.log("seen by logs"); return "ok"; } };`;
    await platform.k("apply -f -", functionManifest("talker", source));
    await platform.callUntil("talker.default", ({ body }) => body === "ok");
    const pods =
      "serverless.kyma-project.io/function-name=talker,serverless.kyma-project.io/resource=deployment";
    // A container runtime writes down what it reads from a container, a moment after.
    await expect.poll(() => platform.k(`logs -l ${pods} --tail=-1`)).toContain("seen by logs");
  });

  test("an edit is answered by the new code", async () => {
    await platform.k("apply -f -", functionManifest("life", answering("two")));
    await platform.callUntil(
      "life.default",
      ({ status, body }) => status === 200 && body === "two",
    );
    await platform.k("wait --for=condition=Running function/life --timeout=60s");
    expect((await platform.k("get function life -o jsonpath={.metadata.generation}")).trim()).toBe(
      "2",
    );
  });

  test("kubectl patch, all three ways that a custom resource allows", async () => {
    await platform.k(
      `patch function life --type=merge -p {"spec":{"env":[{"name":"A","value":"1"}]}}`,
    );
    await platform.k(
      `patch function life --type=json -p [{"op":"add","path":"/spec/env/-","value":{"name":"B","value":"2"}}]`,
    );
    expect(await platform.k("get function life -o jsonpath={.spec.env[*].name}")).toBe("A B");
  });

  test("kubectl scale gives it more instances, and they stay", async () => {
    await platform.k("scale function life --replicas=2");
    await platform.k("wait --for=jsonpath={.status.replicas}=2 function/life --timeout=60s");
    await platform.k("annotate function life touched=yes");
    await pause(500);
    expect(await platform.k("get function life -o jsonpath={.spec.replicas}")).toBe("2");
  });

  test("delete takes everything along", async () => {
    await platform.k("delete function life --timeout=30s");
    await expect
      .poll(
        () =>
          platform.k(
            "get configmaps,jobs,deployments,replicasets,services,pods -l serverless.kyma-project.io/function-name=life -o name",
          ),
        { timeout: 90_000 },
      )
      .toBe("");
    expect((await platform.call("life.default")).status).toBe(404);
  });
});

test("npm dependencies are installed into the image", async () => {
  const source = `const isNumber = require("is-number");\nmodule.exports = { main: (event) => ({ number: isNumber(event.data.value) }) };`;
  const dependencies = JSON.stringify({ dependencies: { "is-number": "7.0.0" } });
  await platform.k("apply -f -", functionManifest("deps", source, { dependencies }));
  await platform.k("wait --for=condition=Running function/deps --timeout=120s");
  const answer = await platform.call("deps.default", {
    headers: { "content-type": "application/json" },
    body: '{"value":"5"}',
  });
  expect(answer).toMatchObject({ status: 200, body: '{"number":true}' });
});

test("environment from values, ConfigMaps and Secrets arrives", async () => {
  await platform.k("create configmap settings --from-literal=color=blue");
  await platform.k("create secret generic token --from-literal=value=s3cret");
  const env = [
    { name: "PLAIN", value: "plain" },
    { name: "COLOR", valueFrom: { configMapKeyRef: { name: "settings", key: "color" } } },
    { name: "TOKEN", valueFrom: { secretKeyRef: { name: "token", key: "value" } } },
  ];
  const source = `module.exports = { main: () => [process.env.PLAIN, process.env.COLOR, process.env.TOKEN].join(" ") };`;
  await platform.k("apply -f -", functionManifest("env", source, { env }));
  await platform.callUntil("env.default", ({ body }) => body === "plain blue s3cret");
});

test("a Function with a minimum and a maximum gets an autoscaler that targets the Function", async () => {
  const scaleConfig = { minReplicas: 1, maxReplicas: 3 };
  await platform.k("apply -f -", functionManifest("scaled", answering("scaled"), { scaleConfig }));
  await platform.k("wait --for=condition=Running function/scaled --timeout=60s");
  const hpa = JSON.parse(
    await platform.k("get hpa -l serverless.kyma-project.io/function-name=scaled -o json"),
  ).items[0];
  expect(hpa.spec).toMatchObject({
    minReplicas: 1,
    maxReplicas: 3,
    scaleTargetRef: { kind: "Function", name: "scaled" },
  });
});

describe("spry", () => {
  test("apply follows a Function and prints its URL; get, invoke, logs and delete work", async () => {
    const applied = await platform.spry(
      ["apply", "-f", "-"],
      functionManifest("cli", answering("from the cli")),
    );
    expect(applied).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("http://cli.default.localhost:"),
    });
    expect((await platform.spry(["get"])).stdout).toMatch(/default\s+cli\s+Running\s+nodejs24\s+1/);
    expect((await platform.spry(["invoke", "cli"])).stdout).toContain("from the cli");
    expect((await platform.spry(["logs", "cli"])).code).toBe(0);
    expect((await platform.spry(["delete", "cli", "--yes"])).code).toBe(0);
    expect(await platform.spry(["get", "cli"])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("Function cli not found in namespace default"),
    });
  });

  test("apply tells every mistake before it writes anything", async () => {
    const { code, stderr } = await platform.spry(
      ["apply", "-f", "-"],
      functionManifest("bad", "x", {
        env: [{ name: "FUNC_PORT", value: "1" }],
        scaleConfig: { minReplicas: 3, maxReplicas: 1 },
      }),
    );
    expect(code).toBe(1);
    expect(stderr).toContain("spec.env");
    expect(stderr).toContain("scaleConfig");
  });
});
