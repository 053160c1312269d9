/** The history of a Function on a real API server: what is recorded, when, and what it is used for. */
import { annotations, type FunctionRevision, functionRevisions } from "@spry/function";
import { resources } from "@spry/kube";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { installKnative, kserviceOf, reportServing } from "../testing/knative.ts";
import { namespace, TestPlatform } from "../testing/platform.ts";

let platform: TestPlatform;

const inline = (source: string) => ({ source: { inline: { source } } });

/** Newest first. */
async function history(name: string): Promise<FunctionRevision[]> {
  const found = await platform.children(functionRevisions, name);
  return found.sort((a, b) => b.revision - a.revision);
}

const numbers = async (name: string) => (await history(name)).map(({ revision }) => revision);
/** Which of them are marked as having served. */
const marks = async (name: string) =>
  (await history(name)).map(({ metadata }) => metadata.annotations?.[annotations.served]);
const servingOf = async (name: string) => (await platform.get(name)).status?.revision;
const imageOf = async (name: string) =>
  (await platform.deployment(name)).spec?.template.spec?.containers[0]?.image;
const jobsOf = async (name: string) =>
  (await platform.children(resources.jobs, name)).map(({ metadata }) => metadata.name);
const recorded = (name: string, number: number) =>
  platform.until(`revision ${number}`, async () => (await numbers(name))[0] === number);

/** Another version, with its build; not yet rolled out. */
async function edit(name: string, spec: object, digit: string): Promise<void> {
  await platform.apply(name, spec);
  await platform.finishBuild(name, digit);
}

describe("on a platform", () => {
  beforeEach(async () => {
    platform = await TestPlatform.start();
  });
  afterEach(() => platform[Symbol.asyncDispose]());

  test("a revision has what it takes to return to it, and belongs to the Function", async () => {
    const author = { [annotations.lastModifier]: "ann" };
    await platform.apply("dice", { ...inline("one"), replicas: 2 }, { annotations: author });
    await platform.finishBuild("dice");
    await recorded("dice", 1);
    const [revision] = await history("dice");
    const fn = await platform.get("dice");
    expect(revision?.metadata).toMatchObject({
      name: "dice-00001",
      ownerReferences: [{ kind: "Function", name: "dice", uid: fn.metadata.uid, controller: true }],
    });
    expect(revision?.data).toEqual({
      spec: { runtime: "nodejs24", ...inline("one") },
      image: await imageOf("dice"),
      buildKey: fn.status?.build?.key,
      author: "ann",
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/),
    });
  });

  test("what serves is the newest revision that has become ready", async () => {
    await platform.running("dice", inline("one"));
    expect(await servingOf("dice")).toBe(1);
    await edit("dice", inline("two"), "2");
    await recorded("dice", 2);
    await platform.condition("dice", "Running", "DeploymentUpdated");
    expect(await servingOf("dice")).toBe(1);
    expect(await marks("dice")).toEqual([undefined, "true"]);
    await platform.rollOut("dice");
    await platform.condition("dice", "Running", "DeploymentReady");
    expect(await servingOf("dice")).toBe(2);
    await platform.until("the mark", async () => (await marks("dice"))[0] === "true");
  });

  test("neither a build that fails, nor another number of replicas, nor a new pass leaves a revision", async () => {
    await platform.running("dice", inline("one"));
    await platform.apply("dice", inline("broken"));
    await platform.endBuild("dice", { exitCode: 1, message: "syntax error" });
    await platform.condition("dice", "BuildReady", "JobFailed");
    await platform.apply("dice", { ...inline("one"), replicas: 3 });
    await platform.until("three replicas", async () => {
      return (await platform.deployment("dice")).spec?.replicas === 3;
    });
    await platform.stopController();
    platform.startController();
    await platform.settle();
    expect(await numbers("dice")).toEqual([1]);
    expect(await servingOf("dice")).toBe(1);
  });

  test("a version that comes back is deployed without a build, as a new revision", async () => {
    await platform.running("dice", inline("one"), "1");
    const first = await imageOf("dice");
    for (const digit of ["2", "3", "4", "5", "6"]) await edit("dice", inline(digit), digit);
    await recorded("dice", 6);
    const builds = await jobsOf("dice");
    await platform.apply("dice", inline("one"));
    await recorded("dice", 7);
    await platform.until("the first image", async () => (await imageOf("dice")) === first);
    expect(builds).toEqual(expect.arrayContaining(await jobsOf("dice")));
  });

  test("another variable is a revision with the same image", async () => {
    await platform.running("dice", inline("one"));
    await platform.apply("dice", { ...inline("one"), env: [{ name: "A", value: "1" }] });
    await recorded("dice", 2);
    const [second, first] = await history("dice");
    expect(second?.data.image).toBe(first?.data.image);
  });

  test("ten revisions stay, the newest, and the one that serves", async () => {
    await platform.running("dice", inline("0"), "0");
    for (let edits = 1; edits <= 20; edits++) {
      await platform.apply("dice", { ...inline("0"), env: [{ name: "N", value: `${edits}` }] });
      await recorded("dice", edits + 1);
    }
    await platform.settle();
    expect(await numbers("dice")).toEqual([21, 20, 19, 18, 17, 16, 15, 14, 13, 1]);
    await platform.rollOut("dice");
    await platform.condition("dice", "Running", "DeploymentReady");
    await platform.apply("dice", { ...inline("0"), env: [{ name: "N", value: "21" }] });
    await recorded("dice", 22);
    await platform.settle();
    expect(await numbers("dice")).toEqual([22, 21, 20, 19, 18, 17, 16, 15, 14, 13]);
  });

  test("a controller that ends after the record goes on with it", async () => {
    await platform.running("dice", inline("one"));
    platform.fault = async (request, pass) => {
      const isDeployment = new URL(request.url).pathname.includes("/deployments/");
      if (!isDeployment || request.method === "GET") return pass(request);
      return Response.json({ message: "down" }, { status: 503 });
    };
    await edit("dice", inline("two"), "2");
    await recorded("dice", 2);
    await platform.stopController();
    platform.fault = undefined;
    platform.startController();
    await platform.rollOut("dice");
    await platform.until("the second image", async () => (await imageOf("dice"))?.endsWith("22"));
    expect(await numbers("dice")).toEqual([2, 1]);
  });

  test("revisions of an earlier Function of this name make room", async () => {
    await platform.client.create(functionRevisions, {
      metadata: {
        name: "dice-00001",
        namespace,
        labels: {
          "serverless.kyma-project.io/managed-by": "function-controller",
          "serverless.kyma-project.io/function-name": "dice",
        },
      },
      revision: 1,
      data: {} as never,
    });
    await platform.running("dice", inline("one"));
    const [revision] = await history("dice");
    expect(revision?.data.spec.source).toEqual(inline("one").source);
  });

  test("another client's ControllerRevision of the name does not keep a Deployment from running", async () => {
    await platform.client.create(functionRevisions, {
      metadata: { name: "dice-00001", namespace },
      revision: 1,
      data: {} as never,
    });
    await platform.running("dice", inline("one"));
    expect(await servingOf("dice")).toBeUndefined();
    expect(platform.troubles.join()).toContain("dice-00001 exists and does not belong");
  });

  test("an edit of the Deployment is undone, and an Event says what to do instead", async () => {
    await platform.running("dice", inline("one"));
    await platform.apply("dice", { ...inline("one"), env: [{ name: "A", value: "1" }] });
    await recorded("dice", 2);
    await platform.rollOut("dice");
    const events = async () =>
      (await platform.client.list(resources.events, { namespace })).items.filter(
        ({ reason }) => reason === "DeploymentRestored",
      );
    await platform.settle();
    expect(await events()).toEqual([]);
    const before = await imageOf("dice");
    const { metadata, spec } = await platform.deployment("dice");
    const [container] = spec?.template.spec?.containers ?? [];
    await platform.client.patch(
      resources.deployments,
      { namespace, name: metadata.name ?? "" },
      // As `kubectl rollout undo` does: the template and the annotations of before.
      {
        metadata: { annotations: { [annotations.desired]: "before" } },
        spec: { template: { spec: { containers: [{ ...container, image: "other" }] } } },
      },
    );
    await platform.until("the image", async () => (await imageOf("dice")) === before);
    const [event] = await platform.until("an Event", async () => {
      const found = await events();
      return found.length > 0 && found;
    });
    expect(event?.message).toContain("`spry rollback dice`");
    expect(event?.involvedObject).toMatchObject({ kind: "Function", name: "dice" });
  });

  test("a lost history begins after what has served", async () => {
    await platform.running("dice", inline("one"));
    const [first] = await history("dice");
    await platform.client.delete(functionRevisions, {
      namespace,
      name: first?.metadata.name ?? "",
    });
    await platform.settle();
    await platform.apply("dice", { ...inline("one"), env: [{ name: "A", value: "1" }] });
    await recorded("dice", 2);
  });
});

test("an operator chooses how many revisions stay", async () => {
  platform = await TestPlatform.start({ historyLimit: 2 });
  await using _ = platform;
  await platform.running("dice", inline("one"), "1");
  for (const digit of ["2", "3", "4"]) {
    await edit("dice", inline(digit), digit);
    await platform.rollOut("dice");
    await platform.condition("dice", "Running", "DeploymentReady");
    await platform.settle();
  }
  expect(await numbers("dice")).toEqual([4, 3]);
});

describe("on demand", () => {
  const fromZero = { scaleConfig: { minReplicas: 0, maxReplicas: 5 } };

  beforeEach(async () => {
    platform = await TestPlatform.start();
    await installKnative(platform);
  });
  afterEach(() => platform[Symbol.asyncDispose]());

  test("revision N is the Knative Revision of that number, and traffic makes none", async () => {
    await edit("dice", { ...inline("one"), ...fromZero }, "1");
    await kserviceOf(platform, "dice");
    await reportServing(platform, "dice");
    await platform.until("serving", async () => (await servingOf("dice")) === 1);
    await edit("dice", { ...inline("two"), ...fromZero }, "2");
    await recorded("dice", 2);
    const template = async () => (await kserviceOf(platform, "dice")).spec.template.metadata?.name;
    await platform.until("the second template", async () => (await template()) === "dice-00002");
    const traffic = [
      { revision: 1, percent: 90 },
      { latest: true, percent: 10 },
    ];
    await platform.apply("dice", { ...inline("two"), ...fromZero, traffic });
    await platform.until("the shares", async () => {
      return (await kserviceOf(platform, "dice")).spec.traffic?.length === 2;
    });
    expect(await numbers("dice")).toEqual([2, 1]);
    expect(await template()).toBe("dice-00002");
  });

  test("a split of the requests that makes a revision has the author who made it", async () => {
    await platform.apply("dice", inline("one"), {
      annotations: { [annotations.lastModifier]: "ann" },
    });
    await platform.finishBuild("dice");
    await recorded("dice", 1);
    const traffic = [{ latest: true, percent: 100, tag: "new" }];
    await platform.apply(
      "dice",
      { ...inline("one"), traffic },
      {
        annotations: { [annotations.lastModifier]: "bob" },
      },
    );
    await recorded("dice", 2);
    expect((await history("dice")).map(({ data }) => data.author)).toEqual(["bob", "ann"]);
  });

  test("another template of the same version is a revision, without an author", async () => {
    const secret = { namespace, name: "key" };
    await platform.client.create(resources.secrets, { metadata: secret, data: {} });
    const secretMounts = [{ secretName: "key", mountPath: "/key" }];
    const author = { annotations: { [annotations.lastModifier]: "ann" } };
    await platform.apply("dice", { ...inline("one"), ...fromZero, secretMounts }, author);
    await platform.finishBuild("dice");
    await recorded("dice", 1);
    await platform.client.patch(resources.secrets, secret, { data: { a: "YQ==" } });
    await recorded("dice", 2);
    expect((await history("dice")).map(({ data }) => data.author)).toEqual([undefined, "ann"]);
  });

  test("revisions that traffic names stay", async () => {
    await edit("dice", { ...inline("0"), ...fromZero }, "1");
    await recorded("dice", 1);
    const traffic = [
      { revision: 1, percent: 50 },
      { latest: true, percent: 50 },
    ];
    for (let edits = 1; edits <= 12; edits++) {
      const env = [{ name: "N", value: `${edits}` }];
      await platform.apply("dice", { ...inline("0"), ...fromZero, traffic, env });
      await recorded("dice", edits + 1);
    }
    await platform.settle();
    expect(await numbers("dice")).toEqual([13, 12, 11, 10, 9, 8, 7, 6, 5, 1]);
  });
});
