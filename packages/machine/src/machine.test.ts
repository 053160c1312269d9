import { type Deployment, type KubeClient, type Pod, resources } from "@spry/kube";
import { expect, test } from "vitest";
import { deploymentOf, eventually, podsOf, startMachine } from "./testing.ts";

/** Answers with its version, says when it is ready, and drains when asked to end. */
const server = (version: string) => `
  const { createServer } = require("node:http");
  const { writeSync } = require("node:fs");
  const server = createServer((request, response) => {
    response.setHeader("connection", "close");
    response.end(${JSON.stringify(version)});
  });
  server.listen(8080, process.env.SERVER_HOST, () => {
    console.log("listening");
    writeSync(+process.env.SPRY_READY_FD, "ready\\n");
  });
  process.on("SIGTERM", () => setTimeout(() => server.close(() => process.exit(0)), 1000));`;
const command = { Entrypoint: ["node", "/app/main.cjs"] };

const revision = "deployment.kubernetes.io/revision";

const isAvailable = (deployment: Deployment) =>
  deployment.status?.conditions?.some(
    ({ type, status }) => type === "Available" && status === "True",
  );

async function expectRolledOut(
  client: KubeClient,
  name: string,
  replicas: number,
): Promise<Deployment> {
  return eventually(async () => {
    const deployment = await client.get(resources.deployments, { namespace: "default", name });
    expect(deployment.status).toMatchObject({
      observedGeneration: deployment.metadata.generation,
      replicas,
      updatedReplicas: replicas,
      readyReplicas: replicas,
      availableReplicas: replicas,
    });
    return deployment;
  });
}

test("a Deployment becomes a process that answers, and its Service knows where", async () => {
  const { client, registry } = await startMachine();
  const image = await registry.push("web:1", { "app/main.cjs": server("one") }, command);
  await client.create(resources.services, {
    metadata: { namespace: "default", name: "web" },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: "http" }] },
  });
  await client.create(resources.deployments, deploymentOf("web", image, { replicas: 2 }));
  const deployment = await expectRolledOut(client, "web", 2);
  expect(isAvailable(deployment)).toBe(true);
  const endpoints = await eventually(async () => {
    const { items } = await client.list(resources.endpointSlices, {
      namespace: "default",
      labelSelector: "kubernetes.io/service-name=web",
    });
    const ready = items.flatMap((slice) =>
      slice.endpoints.filter((each) => each.conditions?.ready),
    );
    expect(ready).toHaveLength(2);
    return ready;
  });
  for (const { addresses } of endpoints) {
    const answer = await fetch(`http://${addresses[0]}:8080/`);
    expect(await answer.text()).toBe("one");
  }
});

test("a new image replaces the old one without a moment in which nothing answers", async () => {
  const { client, registry } = await startMachine();
  const one = await registry.push("web:1", { "app/main.cjs": server("one") }, command);
  const two = await registry.push("web:2", { "app/main.cjs": server("two") }, command);
  await client.create(resources.services, {
    metadata: { namespace: "default", name: "web" },
    spec: { selector: { app: "web" }, ports: [{ port: 80, targetPort: 8080 }] },
  });
  await client.create(resources.deployments, deploymentOf("web", one));
  await expectRolledOut(client, "web", 1);

  const answers: string[] = [];
  const done = new AbortController();
  const load = (async () => {
    while (!done.signal.aborted) {
      const { items } = await client.list(resources.endpointSlices, { namespace: "default" });
      const ready = items
        .flatMap(({ endpoints }) => endpoints)
        .find(({ conditions }) => conditions?.ready);
      expect(ready, "a ready endpoint").toBeDefined();
      const answer = await fetch(`http://${ready?.addresses[0]}:8080/`);
      answers.push(await answer.text());
    }
  })();
  const patch = { spec: { template: deploymentOf("web", two).spec?.template } };
  await client.patch(resources.deployments, { namespace: "default", name: "web" }, patch);
  await expectRolledOut(client, "web", 1);
  await eventually(async () => expect(await podsOf(client, "web")).toHaveLength(1));
  await eventually(() => expect(answers.at(-1)).toBe("two"));
  done.abort();
  await load;
  expect(answers[0]).toBe("one");
  const { items } = await client.list(resources.replicaSets, { namespace: "default" });
  const replicas = new Map(
    items.map((set) => [set.metadata.annotations?.[revision], set.spec?.replicas]),
  );
  expect(Object.fromEntries(replicas)).toEqual({ "1": 0, "2": 1 });
});

test("a Job that succeeds is Complete, and tells what its container said at the end", async () => {
  const { client, registry } = await startMachine();
  const main = `require("node:fs").writeFileSync("/dev/termination-log".replace(/.*/, process.env.SPRY_TERMINATION_LOG), "done: " + process.env.WHAT)`;
  const image = await registry.push("job:1", { "app/main.cjs": main }, command);
  await client.create(resources.jobs, {
    metadata: { namespace: "default", name: "once" },
    spec: {
      template: {
        metadata: { labels: { app: "once" } },
        spec: {
          restartPolicy: "Never",
          containers: [{ name: "main", image, env: [{ name: "WHAT", value: "it" }] }],
        },
      },
    },
  });
  const job = await eventually(async () => {
    const job = await client.get(resources.jobs, { namespace: "default", name: "once" });
    expect(job.status?.conditions).toMatchObject([
      { type: "SuccessCriteriaMet" },
      { type: "Complete", status: "True" },
    ]);
    return job;
  });
  expect(job.status).toMatchObject({ succeeded: 1, completionTime: expect.any(String) });
  const [pod] = await podsOf(client, "once");
  expect(pod?.status).toMatchObject({
    phase: "Succeeded",
    containerStatuses: [
      { state: { terminated: { exitCode: 0, reason: "Completed", message: "done: it" } } },
    ],
  });
  await eventually(async () =>
    expect((await podsOf(client, "once"))[0]?.metadata.finalizers ?? []).toEqual([]),
  );
});

test("a Job that fails is Failed when its retries are used up, with the last lines of its output", async () => {
  const { client, registry } = await startMachine();
  const image = await registry.push(
    "job:1",
    { "app/main.cjs": `console.error("no such thing"); process.exit(2)` },
    command,
  );
  await client.create(resources.jobs, {
    metadata: { namespace: "default", name: "fails" },
    spec: {
      backoffLimit: 0,
      template: {
        metadata: { labels: { app: "fails" } },
        spec: {
          restartPolicy: "Never",
          containers: [{ name: "main", image, terminationMessagePolicy: "FallbackToLogsOnError" }],
        },
      },
    },
  });
  await eventually(async () => {
    const job = await client.get(resources.jobs, { namespace: "default", name: "fails" });
    expect(job.status?.conditions).toMatchObject([
      { type: "FailureTarget", reason: "BackoffLimitExceeded" },
      {
        type: "Failed",
        reason: "BackoffLimitExceeded",
        message: "Job has reached the specified backoff limit",
      },
    ]);
    expect(job.status?.failed).toBe(1);
  });
  const [pod] = await podsOf(client, "fails");
  expect(pod?.status).toMatchObject({
    phase: "Failed",
    containerStatuses: [
      { state: { terminated: { exitCode: 2, reason: "Error", message: "no such thing" } } },
    ],
  });
});

test("an interpreter that is not to be had ends a task, and a server is tried again", async () => {
  const { client, registry } = await startMachine();
  const Labels = { "io.spry.interpreter": "node@24,python@3.99" };
  const image = await registry.push("snake:1", { "app/main.cjs": "" }, { ...command, Labels });
  const why = /^Python 3\.99 is not on this machine/;
  const end = {
    exitCode: 128,
    reason: "StartError",
    message: expect.stringMatching(why) as string,
  };
  await client.create(resources.jobs, {
    metadata: { namespace: "default", name: "task" },
    spec: {
      backoffLimit: 0,
      template: {
        metadata: { labels: { app: "task" } },
        spec: { restartPolicy: "Never", containers: [{ name: "main", image }] },
      },
    },
  });
  await client.create(resources.deployments, deploymentOf("server", image));
  await eventually(async () => {
    const [task] = await podsOf(client, "task");
    expect(task?.status).toMatchObject({
      phase: "Failed",
      containerStatuses: [{ state: { terminated: end } }],
    });
    const [restarted] = await podsOf(client, "server");
    expect(restarted?.status?.containerStatuses).toMatchObject([
      {
        restartCount: 1,
        state: { waiting: { reason: "CrashLoopBackOff" } },
        lastState: { terminated: end },
      },
    ]);
  });
});

test("a container that keeps failing is restarted at once, then in CrashLoopBackOff", async () => {
  const { client, registry } = await startMachine();
  const image = await registry.push("bad:1", { "app/main.cjs": "process.exit(1)" }, command);
  await client.create(resources.deployments, deploymentOf("bad", image));
  await eventually(async () => {
    const [pod] = await podsOf(client, "bad");
    expect(pod?.status?.phase).toBe("Running");
    expect(pod?.status?.containerStatuses).toMatchObject([
      {
        restartCount: 1,
        ready: false,
        state: { waiting: { reason: "CrashLoopBackOff" } },
        lastState: { terminated: { exitCode: 1, reason: "Error" } },
      },
    ]);
    expect(pod?.status?.containerStatuses?.[0]?.state?.waiting?.message).toContain(
      "back-off 10s restarting failed container=main",
    );
  });
});

test.each([
  {
    name: "an image that does not exist",
    spec: (image: string) => ({
      containers: [{ name: "main", image: image.replace(/web.*/, "none:1") }],
    }),
    reason: "ImagePullBackOff",
    message: "none",
  },
  {
    name: "a key that is missing in a Secret",
    spec: (image: string) => ({
      containers: [
        {
          name: "main",
          image,
          env: [{ name: "A", valueFrom: { secretKeyRef: { name: "s", key: "password" } } }],
        },
      ],
    }),
    reason: "CreateContainerConfigError",
    message: "couldn't find key password in Secret default/s",
  },
])("$name: the Pod waits and says why", async ({ spec, reason, message }) => {
  const { client, registry } = await startMachine();
  const image = await registry.push("web:1", { "app/main.cjs": server("one") }, command);
  await client.create(resources.secrets, {
    metadata: { namespace: "default", name: "s" },
    data: {},
  });
  const pod: Pod = {
    metadata: { namespace: "default", name: "p", labels: { app: "p" } },
    spec: spec(image),
  };
  await client.create(resources.pods, pod);
  await eventually(async () => {
    const [pod] = await podsOf(client, "p");
    expect(pod?.status?.containerStatuses?.[0]?.state?.waiting).toMatchObject({
      reason,
      message: expect.stringContaining(message),
    });
  });
  if (reason === "CreateContainerConfigError") {
    const data = { password: Buffer.from("x").toString("base64") };
    await client.patch(resources.secrets, { namespace: "default", name: "s" }, { data });
    await eventually(async () =>
      expect((await podsOf(client, "p"))[0]?.status?.phase).toBe("Running"),
    );
  }
});
