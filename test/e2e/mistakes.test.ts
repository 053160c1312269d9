/** What a beginner gets wrong, and the messages they get. The Function that ran goes on running. */
import { describe, expect, test } from "vitest";
import { enginePlatform } from "../support/engine.ts";
import { functionManifest } from "../support/platform.ts";

const good = `module.exports = { main: () => "still here" };`;
const platform = enginePlatform(async (started) => {
  await started.k("apply -f -", functionManifest("steady", good));
  await started.k("wait --for=condition=Running function/steady --timeout=60s");
});

const inline = (more: object = {}) => ({ inline: { source: good, ...more } });
const git = { url: "https://example.com/repo.git", baseDir: "/", reference: "main" };
const resources = (one: object) => ({ resourceConfiguration: { function: one } });

/** [what is wrong, the spec's difference, words of the answer] */
const refused: [string, Record<string, unknown>, string[]][] = [
  ["an unknown runtime", { runtime: "cobol" }, ["spec.runtime", "nodejs24"]],
  ["a runtime that is gone", { runtime: "nodejs18" }, ["spec.runtime", "nodejs2"]],
  ["no source", { source: {} }, ["Use GitRepository or Inline source"]],
  [
    "two sources",
    { source: { ...inline(), gitRepository: git } },
    ["Use GitRepository or Inline source"],
  ],
  ["an empty source", { source: { inline: { source: "" } } }, ["spec.source.inline.source"]],
  [
    "dependencies that are no object",
    { source: inline({ dependencies: "axios" }) },
    ["dependencies"],
  ],
  [
    "a blank baseDir",
    { source: { gitRepository: { ...git, baseDir: " " } } },
    ["BaseDir is required and cannot be empty"],
  ],
  [
    "a blank reference",
    { source: { gitRepository: { ...git, reference: " " } } },
    ["Reference is required and cannot be empty"],
  ],
  [
    "a blank Secret name",
    { source: { gitRepository: { ...git, auth: { type: "basic", secretName: " " } } } },
    ["SecretName is required and cannot be empty"],
  ],
  ["a reserved variable", { env: [{ name: "FUNC_RUNTIME", value: "x" }] }, ["spec.env"]],
  ["a variable that is no name", { env: [{ name: "1 2", value: "x" }] }, ["spec.env", "1 2"]],
  [
    "minimum above maximum",
    { scaleConfig: { minReplicas: 3, maxReplicas: 2 } },
    ["minReplicas should be less than or equal maxReplicas"],
  ],
  [
    "a minimum below zero",
    { scaleConfig: { minReplicas: -1, maxReplicas: 2 } },
    ["scaleConfig.minReplicas"],
  ],
  ["an unknown profile", resources({ profile: "XXL" }), ["Invalid profile, please use one of"]],
  [
    "profile and resources",
    resources({ profile: "S", resources: { limits: { cpu: "1" } } }),
    ["Use profile or resources"],
  ],
  [
    "requests above limits",
    resources({ resources: { requests: { cpu: "200m" }, limits: { cpu: "100m" } } }),
    ["cpu", "should be higher than"],
  ],
  ["limits below the floor", resources({ resources: { limits: { cpu: "1m" } } }), ["cpu", "10m"]],
  ["a label of our domain", { labels: { "serverless.kyma-project.io/x": "y" } }, ["spec.labels"]],
  ["a label value that is too long", { labels: { a: "x".repeat(64) } }, ["spec.labels"]],
  [
    "an annotation of our domain",
    { annotations: { "serverless.kyma-project.io/x": "y" } },
    ["spec.annotations"],
  ],
  [
    "labels in the template",
    { template: { labels: { a: "b" } } },
    ["Not supported: Use spec.labels and spec.annotations"],
  ],
  [
    "one Secret mounted twice",
    {
      secretMounts: [
        { secretName: "a", mountPath: "/a" },
        { secretName: "a", mountPath: "/b" },
      ],
    },
    ["secretNames should be unique"],
  ],
  [
    "a Secret name that is none",
    { secretMounts: [{ secretName: "A_b", mountPath: "/a" }] },
    ["secretMounts"],
  ],
  ["an empty mount path", { secretMounts: [{ secretName: "a", mountPath: "" }] }, ["mountPath"]],
  ["a field that does not exist", { repicas: 2 }, ["spec.repicas"]],
];

describe("is refused at apply, naming the field", () => {
  test.each(refused)("%s", async (_name, difference, words) => {
    const { code, stderr } = await platform.kubectl(
      ["apply", "-f", "-"],
      functionManifest("steady", good, difference),
    );
    expect(code).not.toBe(0);
    for (const word of words) expect(stderr).toContain(word);
  });

  test("a name that no Service could have", async () => {
    const { code, stderr } = await platform.kubectl(
      ["apply", "-f", "-"],
      functionManifest("1-name", good),
    );
    expect(code).not.toBe(0);
    expect(stderr).toContain("metadata.name");
  });

  test("and the Function that was running stays as it was", async () => {
    expect(await platform.call("steady.default")).toMatchObject({
      status: 200,
      body: "still here",
    });
    expect(await platform.k("get function steady -o jsonpath={.metadata.generation}")).toBe("1");
  });
});

test("a deprecated runtime is accepted with a warning", async () => {
  const result = await platform.kubectl(
    ["apply", "--dry-run=server", "-f", "-"],
    functionManifest("old", good, { runtime: "nodejs20" }),
  );
  expect(result).toMatchObject({ code: 0, stderr: expect.stringMatching(/Warning:.*nodejs20/s) });
});

test("a package that does not exist: BuildReady tells what npm said, and the old code goes on serving", async () => {
  const dependencies = JSON.stringify({ dependencies: { "spry-no-such-package-here": "1.0.0" } });
  await platform.k("apply -f -", functionManifest("steady", good, { dependencies }));
  await platform.k("wait --for=condition=BuildReady=False function/steady --timeout=60s");
  const text = await platform.k("describe function steady");
  expect(text).toContain("JobFailed");
  expect(text).toContain("spry-no-such-package-here");
  expect(await platform.call("steady.default")).toMatchObject({ status: 200, body: "still here" });
  await platform.k("apply -f -", functionManifest("steady", good));
  await platform.k("wait --for=condition=BuildReady=True function/steady --timeout=60s");
});

test("a syntax error: describe shows it with its line, the old code goes on serving", async () => {
  await platform.k("apply -f -", functionManifest("steady", "module.exports = { main( { };"));
  await expect
    .poll(() => platform.k("describe function steady"), { timeout: 60_000 })
    .toContain("SyntaxError");
  expect(await platform.call("steady.default")).toMatchObject({ status: 200, body: "still here" });
});

test("a mistake in TypeScript that has to be compiled: BuildReady names its line; without it, it runs", async () => {
  const source = (value: string) => `interface Event { data: unknown }
enum Color { Red, Green = ${value} }
class Answer { constructor(private readonly color: Color) {} text() { return Color[this.color]; } }
export const main = (event: Event): string => new Answer(7).text();`;
  await platform.k("apply -f -", functionManifest("typed", source(";")));
  await platform.k("wait --for=condition=BuildReady=False function/typed --timeout=60s");
  expect(await platform.k("describe function typed")).toMatch(/handler\.js:2:27: /);
  await platform.k("apply -f -", functionManifest("typed", source("7")));
  const answer = await platform.callUntil("typed.default", ({ status }) => status === 200);
  expect(answer.body).toBe("Green");
});

test("a Function that never loaded: the HTTP answer names the reason", async () => {
  await platform.k("apply -f -", functionManifest("broken", "throw new Error('no luck today');"));
  await expect
    .poll(() => platform.k("describe function broken"), { timeout: 60_000 })
    .toContain("no luck today");
  const answer = await platform.call("broken.default");
  expect(answer.status).toBe(503);
  expect(answer.body).toContain("broken");
});

test("a body that is no JSON", async () => {
  const source = `module.exports = { main: (event) => event.data };`;
  await platform.k("apply -f -", functionManifest("json", source));
  await platform.callUntil("json.default", ({ status }) => status === 200);
  const answer = await platform.call("json.default", {
    headers: { "content-type": "application/json" },
    body: "{no",
  });
  expect(answer.status).toBe(400);
  expect(answer.body).toMatch(/JSON/);
  expect((await platform.call("json.default")).status).toBe(200);
});

test("an unknown host", async () => {
  const answer = await platform.call("nobody.default");
  expect(answer.status).toBe(404);
  expect(answer.body).toContain("nobody");
});
