/**
 * Functions on demand for longer: 0 → N → 0 with requests at any moment, changes under load, and crashes while requests
 * wait. `SPRY_TEST_FUNCTIONS` and `SPRY_TEST_ROUNDS` make it smaller, `SPRY_TEST_SEED` repeats what has failed.
 */
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { type Condition } from "@spry/kube";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Random } from "../conformance/wire/random.ts";
import { type Answer } from "../support/calls.ts";
import { allowGitServers } from "../support/git-addresses.ts";
import { Load } from "../support/load.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";
import { untilTrue } from "../support/until-true.ts";

const functions = Number(process.env["SPRY_TEST_FUNCTIONS"] ?? 50);
const rounds = Number(process.env["SPRY_TEST_ROUNDS"] ?? 20);
const seed = Number(process.env["SPRY_TEST_SEED"] ?? 17);
const hour = 3_600_000;

const impatient = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "config-autoscaler", namespace: "knative-serving" },
  data: { "scale-to-zero-grace-period": "0s" },
};
const scaleConfig = { minReplicas: 0, maxReplicas: 3 };
const onDemand = { scaleConfig, annotations: { "autoscaling.knative.dev/window": "6s" } };
const answering = (text: string) => `module.exports = { main: () => ${JSON.stringify(text)} };`;

const platform = new Platform();
beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", JSON.stringify(impatient));
});
afterAll(() => platform.remove());

async function podsOf(name: string): Promise<string[]> {
  const names = await platform.k(`get pods -l serving.knative.dev/service=${name} -o name`);
  return names.split("\n").filter(Boolean);
}
const atZero = (name: string) =>
  untilTrue(`${name} at zero`, async () => (await podsOf(name)).length === 0, 120_000);

async function apply(name: string, source: string, spec: object = onDemand): Promise<void> {
  await platform.k("apply -f -", functionManifest(name, source, { ...spec }));
}

async function create(name: string, source = answering(name)): Promise<void> {
  await apply(name, source);
  await platform.k(`wait --for=condition=Running function/${name} --timeout=120s`);
}

function loadOn(name: string): Load {
  const load = new Load(platform.gateway, `${name}.default.localhost`);
  load.start(200);
  return load;
}

/** What it takes to say which request was lost, when and why. */
const lost = (answers: Answer[]) =>
  answers.filter(({ status }) => status !== 200).map(({ status, body }) => `${status} ${body}`);

test(
  "a burst at zero waits for a few Pods, and no request is lost",
  { timeout: hour },
  async () => {
    await create("burst");
    await atZero("burst");
    const answers = await Promise.all(
      Array.from({ length: 200 }, () => platform.call("burst.default")),
    );
    expect(lost(answers)).toEqual([]);
    expect((await podsOf("burst")).length).toBeLessThanOrEqual(3);
  },
);

test(
  `${functions} Functions × ${rounds} times from zero and back lose no request`,
  { timeout: hour },
  async () => {
    const names = Array.from({ length: functions }, (_, index) => `zero-${index}`);
    for (const name of names) await apply(name, answering(name));
    await platform.k("wait --for=condition=Running functions --all --timeout=600s");
    const failures: string[] = [];
    await Promise.all(
      names.map(async (name, index) => {
        const random = new Random(seed * 1_000 + index);
        for (let cold = 0; cold < rounds;) {
          const burst = Array.from({ length: 1 + random.below(6) }, async () => {
            await pause(random.below(100));
            return platform.call(`${name}.default`);
          });
          const answers = await Promise.all(burst);
          failures.push(...lost(answers).map((why) => `${name}: ${why}`));
          if (failures.length > 20) return;
          const waited = answers.some(({ headers }) =>
            headers["server-timing"]?.includes("coldstart"),
          );
          if (waited) cold++;
          // Around the moment at which its Pods end, six to eight seconds after the last request.
          await pause(4_000 + random.below(8_000));
        }
      }),
    );
    expect(failures).toEqual([]);
    await untilTrue(
      "no Pods",
      async () => (await platform.k("get pods -l serving.knative.dev/revision -o name")) === "",
      120_000,
    );
  },
);

describe("at 200 requests per second", () => {
  test(`${functions} roll-outs fail none`, { timeout: hour }, async () => {
    await create("roll", answering("v0"));
    const load = loadOn("roll");
    for (let edit = 1; edit <= functions; edit++) {
      await apply("roll", answering(`v${edit}`));
      await platform.callUntil("roll.default", ({ body }) => body === `v${edit}`);
    }
    await load.stop();
    expect(load.failures).toEqual([]);
  });

  test(
    `${rounds} changes between the two ways of serving fail none`,
    { timeout: hour },
    async () => {
      await create("switch", answering("on"));
      const load = loadOn("switch");
      for (let change = 1; change <= rounds; change++) {
        const way = change % 2 === 1 ? {} : onDemand;
        await apply("switch", answering("on"), way);
        await untilTrue(
          "the former way is gone",
          async () => {
            const all = await platform.k("get deployments,ksvc -o name");
            const isKnative = all.includes("service.serving.knative.dev/switch\n");
            const isDeployment = all.includes("deployment.apps/switch\n");
            return isKnative === change % 2 < 1 && isDeployment === change % 2 > 0;
          },
          120_000,
        );
        expect(load.failures.slice(0, 5), `change ${change}`).toEqual([]);
      }
      await load.stop();
      expect(load.failures).toEqual([]);
    },
  );
});

describe("kill -9 while requests wait at zero", () => {
  const gatewayPid = () =>
    (
      JSON.parse(readFileSync(path.join(platform.dataDir, "gateway.json"), "utf8")) as {
        pid: number;
      }
    ).pid;

  /** As a client does it: what has failed is sent again. */
  async function untilAnswered(host: string): Promise<void> {
    const deadline = performance.now() + 60_000;
    for (let last = ""; ; await pause(50)) {
      if (performance.now() > deadline) throw new Error(`${host} was not answered: ${last}`);
      try {
        const { status, body } = await platform.call(host);
        if (status === 200) return;
        last = `${status} ${body}`;
      } catch (error) {
        last = String(error);
      }
    }
  }

  beforeAll(async () => {
    await create("crash");
    await create("crash-too");
  }, 240_000);

  const killGateway = () => process.kill(gatewayPid(), "SIGKILL");
  test.each<[string, () => Promise<void>]>([
    ["the gateway", async () => void killGateway()],
    [
      "the platform",
      async () => {
        await platform.kill();
        await platform.start();
      },
    ],
    [
      "both",
      async () => {
        killGateway();
        await platform.kill();
        await platform.start();
      },
    ],
  ])(
    "of %s: what a client repeats is answered, and nothing is left",
    async (_, kill) => {
      const random = new Random(seed);
      for (let round = 0; round < Math.min(rounds, 5); round++) {
        await atZero("crash");
        await atZero("crash-too");
        const requests = ["crash", "crash-too"].flatMap((name) =>
          Array.from({ length: 20 }, () => untilAnswered(`${name}.default`)),
        );
        await pause(random.below(500));
        await kill();
        await Promise.all(requests);
        expect(platform.output).not.toContain("uncaught");
      }
      await atZero("crash");
      await atZero("crash-too");
      const left = () =>
        processesOf(platform.dataDir).filter((line) => line.includes("server.cjs"));
      await untilTrue("no container is left", async () => left().length === 0, 60_000);
    },
    hour,
  );
});

const conditionsOf = async (kind: string, name: string) => {
  const text = await platform.k(`get ${kind} ${name} -o json`);
  const { status } = JSON.parse(text) as { status?: { conditions?: Condition[] } };
  const conditions = status?.conditions ?? [];
  return Object.fromEntries(
    conditions.map(({ type, status: is, reason = "" }) => [type, `${is} ${reason}`.trim()]),
  );
};

describe("a Function", () => {
  test("whose image is gone from the registry says so, is built again, and is there", async () => {
    await create("gone");
    await atZero("gone");
    await platform.stop();
    for (const room of ["registry", "node/images"])
      rmSync(path.join(platform.dataDir, room), { recursive: true, force: true });
    await platform.start();
    const seen = new Set<string>();
    const answered = platform.callUntil("gone.default", ({ status }) => status === 200, {
      timeoutMs: 180_000,
    });
    do seen.add((await conditionsOf("function", "gone"))["BuildReady"] ?? "");
    while (!(await Promise.race([answered, pause(20)])));
    expect([...seen].some((condition) => condition.startsWith("Unknown Job"))).toBe(true);
    const { items } = JSON.parse(await platform.k("get events -o json")) as {
      items: { reason: string; message: string }[];
    };
    const messages = items
      .filter(({ reason }) => reason === "Failed")
      .map(({ message }) => message);
    expect(messages.join("\n")).toMatch(/not found|unknown/i);
    expect(await conditionsOf("revision", "gone-00001")).toMatchObject({ Ready: "True" });
  }, 240_000);

  test("that never becomes ready is reported; the one before keeps serving, and the next one replaces it", async () => {
    await create("stuck", answering("before"));
    await apply("stuck", "for (;;);");
    await untilTrue(
      "the second revision",
      async () => (await platform.k("get revisions -o name")).includes("/stuck-00002"),
      60_000,
    );
    await pause(8_000);
    expect((await conditionsOf("function", "stuck"))["Running"]).not.toMatch(/^True/);
    expect((await conditionsOf("revision", "stuck-00002"))["Ready"]).toBe("Unknown Deploying");
    expect(await platform.call("stuck.default")).toMatchObject({ status: 200, body: "before" });
    await apply("stuck", answering("after"));
    await platform.callUntil("stuck.default", ({ body }) => body === "after");
  });

  test("that dies under load: what can be retried is, all else is reported, and the next request is answered", async () => {
    const dies = `module.exports = { main: (event) => {
      if (event.extensions.request.path === "/die") process.exit(3);
      return "alive"; } };`;
    await create("dies", dies);
    const load = loadOn("dies");
    const die = async () => {
      await pause(1_000);
      return await platform.call("dies.default", { path: "/die", method: "POST", body: "x" });
    };
    const sentence =
      "Revision default/dies-00001 closed the connection before it responded; it may have handled the request";
    // A GET is retried, a POST under way in a container that dies is not (gateway/attempt/retry.ts). All others wait.
    const unlike = (...expected: string[]) =>
      load.failures.filter((why) => !expected.some((start) => why.includes(start)));
    expect((await die()).body).toContain(sentence);
    await platform.callUntil("dies.default", ({ status }) => status === 200);
    await pause(1_000);
    expect(unlike(`POST: 502 ${sentence}`)).toEqual([]);
    expect(load.answered).toBeGreaterThan(300);

    // The second time it is started after a pause of ten seconds, as long as requests wait.
    expect((await die()).body).toContain(sentence);
    await platform.callUntil("dies.default", ({ status }) => status === 200);
    await load.stop();
    const failed = "503 Revision default/dies-00001 is not ready: Container failed with: ";
    // Also a GET that a container had, and that no other could be given.
    expect(unlike(`: 502 ${sentence}`, failed)).toEqual([]);
    await atZero("dies");
  });
});

test("a Revision whose image does not exist is reported in Knative's words; the one before serves, from zero as well", async () => {
  await create("whole", answering("whole"));
  const image = await platform.k(
    "get revision whole-00001 -o jsonpath={.spec.containers[0].image}",
  );
  const kservice = (named: string) =>
    JSON.stringify({
      apiVersion: "serving.knative.dev/v1",
      kind: "Service",
      metadata: { name: "lost", namespace: "default" },
      spec: {
        template: {
          metadata: { annotations: onDemand.annotations },
          spec: {
            // Whose Pods may pull the namespace's images.
            serviceAccountName: "serverless-function",
            containers: [{ image: named, env: [{ name: "FUNC_NAME", value: "lost" }] }],
          },
        },
      },
    });
  await platform.k("apply -f -", kservice(image));
  await platform.k("wait --for=condition=Ready ksvc/lost --timeout=60s");
  await platform.k("apply -f -", kservice(image.replace(/@.*/, `@sha256:${"0".repeat(64)}`)));
  await platform.k("wait --for=condition=Ready=False ksvc/lost --timeout=60s");
  expect(await conditionsOf("revision", "lost-00002")).toMatchObject({
    ResourcesAvailable: expect.stringMatching(/^False (?:ErrImagePull|ImagePullBackOff)$/),
    Ready: expect.stringMatching(/^False (?:ErrImagePull|ImagePullBackOff)$/),
  });
  expect(await conditionsOf("configuration", "lost")).toEqual({ Ready: "False RevisionFailed" });
  expect(await conditionsOf("ksvc", "lost")).toEqual({
    ConfigurationsReady: "False RevisionFailed",
    Ready: "False RevisionFailed",
    RoutesReady: "True",
  });
  expect(await conditionsOf("route", "lost")).toMatchObject({ Ready: "True" });
  expect((await platform.call("lost.default")).body).toBe("whole");
  const serving = () => platform.k("get pods -l serving.knative.dev/revision=lost-00001 -o name");
  await untilTrue("none that serves", async () => (await serving()) === "", 120_000);
  expect((await platform.call("lost.default")).body).toBe("whole");
});

describe("rollbacks at 200 requests per second fail none", () => {
  const repository = new TestRepository();
  let server: GitHttpServer;
  beforeAll(async () => {
    const host = platform.hostAddress;
    await allowGitServers(platform, [host]);
    repository.commit({ "handler.js": answering("none"), "package.json": "{}" });
    server = await GitHttpServer.start({ root: repository.root, host });
  });
  afterAll(async () => {
    await server?.[Symbol.asyncDispose]();
    repository[Symbol.dispose]();
  });

  const inline = (name: string, text: string, spec: object) =>
    functionManifest(name, answering(text), { ...spec });
  function fromGit(name: string, text: string, spec: object): string {
    repository.commit({ "handler.js": answering(text) });
    const gitRepository = { url: `${server.origin}/shop.git`, reference: "main", baseDir: "/" };
    const annotations = { "serverless.kyma-project.io/git-check": text };
    return functionManifest(name, "", { ...spec, source: { gitRepository } }, { annotations });
  }

  test.each([
    ["inline, on demand", "inline-zero", inline, onDemand],
    ["inline, as a Deployment", "inline", inline, {}],
    ["from Git, on demand", "git-zero", fromGit, onDemand],
    ["from Git, as a Deployment", "git", fromGit, {}],
  ])(
    "%s",
    async (_, name, manifest, spec) => {
      const host = `${name}.default`;
      for (const text of ["one", "two"]) {
        await platform.k("apply -f -", manifest(name, text, spec));
        await platform.callUntil(host, ({ body }) => body === text);
      }
      await platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
      const load = loadOn(name);
      for (let round = 0; round < Math.min(rounds, 10); round++) {
        const expected = round % 2 === 0 ? "one" : "two";
        const { code, stderr } = await platform.spry(["rollback", name]);
        expect(code, stderr).toBe(0);
        await platform.callUntil(host, ({ body }) => body === expected);
      }
      await load.stop();
      expect(load.failures).toEqual([]);
    },
    hour,
  );
});
