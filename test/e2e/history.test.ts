/** The history of Functions, and the way back: by the command, under load, over crashes. */
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { afterAll, describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { allowGitServers } from "../support/git-addresses.ts";
import { Load } from "../support/load.ts";
import { answering, historyOn } from "../support/history.ts";
import { functionManifest, pause } from "../support/platform.ts";

const repository = new TestRepository();
let server: GitHttpServer;

const platform = enginePlatform(async (started) => {
  await allowGitServers(started, [started.hostAddress]);
  repository.commit({ "handler.js": answering("first"), "package.json": "{}" });
  server = await GitHttpServer.start({ root: repository.root, host: started.hostAddress });
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  repository[Symbol.dispose]();
});

const { answers, edit, historyOf, jobsOf, numbersOf, rollback, settled } = historyOn(platform);

async function loadOn(name: string): Promise<Load> {
  const load = new Load(platform.gateway, `${name}.default.localhost`);
  load.start(100);
  return load;
}

describe("an inline Function", () => {
  test("has a history that says who changed what when, and what serves", async () => {
    await edit("dice", "one", { replicas: 2 });
    await edit("dice", "two", { replicas: 2, env: [{ name: "B", value: "2" }] });
    await settled("dice", 2);
    const [second, first] = await historyOf("dice");
    expect(second).toMatchObject({ revision: 2, serves: 100, source: { type: "inline" } });
    expect(first).toMatchObject({ revision: 1, serves: 0 });
    expect(first?.author).toBe(second?.author);
    expect(first?.author).toMatch(/\S/);
    const { stdout } = await platform.spry(["history", "dice"]);
    expect(stdout).toMatch(/^VERSION +TIME +AUTHOR +RUNTIME +SOURCE +IMAGE +SERVES\n2 .*100 %\n1 /);
    const table = await platform.k("get controllerrevisions");
    expect(table).toMatch(/^NAME +CONTROLLER +REVISION +AGE\ndice-00001 +function[^ ]*\/dice +1 /);
  });

  test("returns to a revision without a build, and no request fails", async () => {
    const load = await loadOn("dice");
    const builds = await jobsOf("dice");
    const begin = performance.now();
    const { stderr } = await rollback("dice", "--no-wait");
    expect(stderr).toContain("function/dice rolled back to version 1 (nodejs24, inline sha256:");
    const applied = performance.now();
    await answers("dice", "one");
    const end = performance.now();
    console.log(
      `rolled back: ${Math.round(applied - begin)} ms for the command, ${Math.round(end - applied)} ms until it serves`,
    );
    await settled("dice", 3);
    // The other Pod of before is gone, too.
    await platform.k("rollout status deployment/dice --timeout=60s");
    await pause(300);
    await load.stop();
    expect(load.failures).toEqual([]);
    expect(await jobsOf("dice")).toBeLessThanOrEqual(builds);
    const spec = JSON.parse(await platform.k("get function dice -o jsonpath={.spec}"));
    expect(spec.env).toBeUndefined();
    expect(spec.replicas).toBe(2);
    const [third, , first] = await historyOf("dice");
    expect(third).toMatchObject({ revision: 3, serves: 100, image: first?.image });
  });

  test("returns to what served, past a version whose code never loaded", async () => {
    await edit("crashing", "works");
    await platform.k("apply -f -", functionManifest("crashing", 'throw new Error("no way");'));
    await platform.k("wait --for=condition=Running=false function/crashing --timeout=60s");
    await edit("crashing", "works again");
    await settled("crashing", 3);
    const { stdout } = await platform.spry(["history", "crashing"]);
    expect(stdout).toMatch(/^2 .*never ready$/m);
    const { stderr } = await rollback("crashing");
    expect(stderr).toContain("rolled back to version 1");
    await answers("crashing", "works");
    await platform.k("delete function crashing --timeout=60s");
  });

  test("goes back and forth, and an apply afterwards has no conflict", async () => {
    const { stderr } = await rollback("dice", "2");
    expect(stderr).toMatch(/version 4 serves after [\d.]+ s/);
    await answers("dice", "two");
    const manifest = functionManifest("dice", answering("three"));
    const { code, stderr: applied } = await platform.spry(["apply", "-f", "-"], manifest);
    expect(code, applied).toBe(0);
    await answers("dice", "three");
  });

  test.each([
    [["dice", "--to", "99"], "Function dice has no version 99; it has 5, 4, 3, 2, 1"],
    [["dice", "--to", "5"], "Function dice already has the content of version 5"],
    [["dice", "--to", "none"], "none is not a valid number of a version"],
    [["nobody"], "Function nobody not found in namespace default"],
  ])("spry rollback %j is refused", async (args, message) => {
    const { code, stderr } = await platform.spry(["rollback", ...args]);
    expect(stderr).toContain(`error: ${message}`);
    expect(code).toBe(1);
  });

  test("without a version that was deployed there is no history", async () => {
    const dependencies = JSON.stringify({ dependencies: { "is-number": "999.0.0" } });
    await platform.k(
      "apply -f -",
      functionManifest("broken", answering("never"), { dependencies }),
    );
    await platform.k("wait --for=condition=BuildReady=False function/broken --timeout=60s");
    const { code, stderr } = await platform.spry(["history", "broken"]);
    expect(stderr).toContain("Function broken has no history yet");
    expect(code).toBe(1);
    await platform.k("delete function broken");
  });

  test("that is being deleted is not rolled back", async () => {
    await platform.k(
      `patch function dice --type=merge -p {"metadata":{"finalizers":["test/hold"]}}`,
    );
    await platform.k("delete function dice --wait=false");
    const { stderr } = await platform.spry(["rollback", "dice"]);
    expect(stderr).toContain("Function dice is being deleted");
    await platform.k(`patch function dice --type=merge -p {"metadata":{"finalizers":null}}`);
  });

  test("takes its history along", async () => {
    await expect.poll(() => platform.k("get controllerrevisions -o name")).toBe("");
  });
});

describe("a Function from Git", () => {
  const function_ = (name: string) => {
    const url = `${server.origin}/shop.git`;
    const gitRepository = { url, reference: "main", baseDir: "/" };
    const check = { "serverless.kyma-project.io/git-check-interval": "5s" };
    return functionManifest(name, "", { source: { gitRepository } }, { annotations: check });
  };

  test("returns to the commit of a revision, and says that it is pinned; no request fails", async () => {
    await platform.k("apply -f -", function_("vine"));
    await answers("vine", "first");
    repository.commit({ "handler.js": answering("second") });
    await answers("vine", "second");
    await settled("vine", 2);
    const load = await loadOn("vine");
    const { stderr } = await rollback("vine");
    await answers("vine", "first");
    await platform.k("rollout status deployment/vine --timeout=60s");
    await load.stop();
    expect(load.failures).toEqual([]);
    const [third, second, first] = await historyOf("vine");
    const commit = first?.source.commit ?? "";
    expect(stderr).toContain(`reference is now the commit ${commit}, and was main`);
    expect(third?.source).toMatchObject({ reference: commit, commit });
    // A commit is not a user's request.
    expect(second?.author).toBeUndefined();
    expect(first?.author).toBe(third?.author);
    expect(await jobsOf("vine")).toBeLessThanOrEqual(3);
  });

  test("follows its branch again when its manifest is applied again", async () => {
    await platform.k("apply -f -", function_("vine"));
    await answers("vine", "second");
  });
});

describe("GitOps", () => {
  const manifest = (text: string, annotations = {}) =>
    functionManifest("declared", answering(text), {}, { annotations });
  const version = () => platform.k("get function declared -o jsonpath={.metadata.resourceVersion}");
  const author = async () =>
    JSON.parse(await platform.k("get function declared -o jsonpath={.metadata.annotations}"))[
      lastModifier
    ] as string;
  const lastModifier = "serverless.kyma-project.io/last-modifier";

  test("a manifest that is applied again changes nothing, whatever it says of the author", async () => {
    await platform.k("apply --server-side --field-manager=gitops -f -", manifest("one"));
    await answers("declared", "one");
    await settled("declared", 1);
    await platform.k("wait --for=condition=Running function/declared --timeout=60s");
    const before = await version();
    const name = await author();
    for (const claim of [{}, { [lastModifier]: name }, { [lastModifier]: "eve" }]) {
      const text = manifest("one", claim);
      await platform.k("apply --server-side --force-conflicts --field-manager=gitops -f -", text);
      const diff = await platform.kubectl(["diff", "--server-side", "-f", "-"], manifest("one"));
      expect(diff).toMatchObject({ code: 0, stdout: "" });
      expect(await author()).toBe(name);
    }
    await platform.k(
      "apply --server-side --force-conflicts --field-manager=gitops -f -",
      manifest("one"),
    );
    await platform.k("replace -f -", manifest("one"));
    expect(await author()).toBe(name);
    const generation = await platform.k("get function declared -o jsonpath={.metadata.generation}");
    expect(generation).toBe("1");
    expect(before).toMatch(/^\d+$/);
  });

  test("the user who changes the spec is its author", async () => {
    const token = ["--as=ann", "--as-group=system:masters"];
    const patch = '{"spec":{"env":[{"name":"A","value":"1"}]}}';
    await platform.k(`patch function declared --type=merge -p ${patch} ${token.join(" ")}`);
    await settled("declared", 2);
    const [second] = await historyOf("declared");
    expect(second?.author).toBe("ann");
  });
});

test("kubectl shows, labels and keeps revisions; a rollout of the Deployment cannot be undone", async () => {
  await platform.k("label controllerrevision declared-00001 kept=yes");
  const patch = '{"data":{"image":"other"}}';
  const changed = await platform.kubectl([
    ..."patch controllerrevision declared-00001 --type=merge -p".split(" "),
    patch,
  ]);
  expect(changed.stderr).toContain("field is immutable");
  await platform.k("set image deployment/declared function=example.invalid/other:1");
  await expect
    .poll(() =>
      platform.k(
        "get events --field-selector=reason=DeploymentRestored -o jsonpath={.items[*].message}",
      ),
    )
    .toContain("`spry rollback declared` returns to an earlier revision");
  await answers("declared", "one");
});

test("on demand, revision N is the Knative Revision, and a rollback loses no request", async () => {
  const fromZero = { scaleConfig: { minReplicas: 0, maxReplicas: 3 } };
  await edit("lazy", "one", fromZero);
  await edit("lazy", "two", fromZero);
  await settled("lazy", 2);
  const load = await loadOn("lazy");
  await rollback("lazy");
  await answers("lazy", "one");
  await pause(500);
  await load.stop();
  expect(load.failures).toEqual([]);
  expect(await numbersOf("lazy")).toEqual([3, 2, 1]);
  expect(await platform.k("get revisions.serving.knative.dev -o name")).toContain("/lazy-00003");
  const { code, stderr } = await platform.spry(["traffic", "lazy", "2=90,latest=10"]);
  expect(code, stderr).toBe(0);
  const shares = async () => (await historyOf("lazy")).map(({ serves }) => serves);
  expect(await shares()).toEqual([10, 90, 0]);
  const { stderr: note } = await rollback("lazy", "--to", "2", "--no-wait");
  expect(note).toContain("spec.traffic gives the new version 10 % of the requests");
});
