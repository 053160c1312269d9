/** Functions that are one of several packages of a repository. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { buildFunctionImage, createLayer, pullImage } from "../index.ts";
import { type Files, given, write } from "../testing/build.ts";
import { startNpmRegistry } from "../testing/npm-registry.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { parseMonorepo } from "./monorepo.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const packages = Object.fromEntries(
  ["greeting@1.0.0", "greeting@2.0.0", "axios@1.7.0"].map((id) => [
    id,
    { files: { "index.js": `module.exports = "${id.replace("@", " ")}";` } },
  ]),
);
const json = (value: unknown) => JSON.stringify(value);
const handler = `module.exports = { main: () => require("@mono/shared")() };`;
const shared = `module.exports = () => "shared, " + require("greeting") + ", " + require("@mono/deep");`;

/** As fetched: of `packages/other`, which nobody needs, the package.json alone. */
const workspaces: Files = {
  "package.json": json({ name: "mono", private: true, workspaces: ["apps/*", "packages/*"] }),
  "package-lock.json": json({
    name: "mono",
    lockfileVersion: 3,
    requires: true,
    packages: {
      "": { name: "mono", workspaces: ["apps/*", "packages/*"] },
      "apps/fn": { name: "fn", version: "1.0.0", dependencies: { "@mono/shared": "*" } },
      "packages/deep": { name: "@mono/deep", version: "1.0.0" },
      "packages/other": { name: "other", version: "1.0.0" },
      "packages/shared": {
        name: "@mono/shared",
        version: "1.0.0",
        dependencies: { greeting: "*", "@mono/deep": "*" },
      },
      "node_modules/@mono/deep": { resolved: "packages/deep", link: true },
      "node_modules/@mono/shared": { resolved: "packages/shared", link: true },
      "node_modules/fn": { resolved: "apps/fn", link: true },
      "node_modules/greeting": { version: "1.0.0" },
      "node_modules/other": { resolved: "packages/other", link: true },
    },
  }),
  "apps/fn/package.json": json({
    name: "fn",
    version: "1.0.0",
    dependencies: { "@mono/shared": "*" },
  }),
  "packages/shared/package.json": json({
    name: "@mono/shared",
    version: "1.0.0",
    dependencies: { greeting: "*", "@mono/deep": "*" },
  }),
  "packages/shared/index.js": shared,
  "packages/deep/package.json": json({ name: "@mono/deep", version: "1.0.0" }),
  "packages/deep/index.js": `module.exports = "deep";`,
  "packages/other/package.json": json({ name: "other", version: "1.0.0" }),
};

async function built(repository: Files, folder: string, options: object) {
  const { npmConfig, requests } = await startNpmRegistry({ packages });
  const own = Object.entries(repository)
    .filter(([path]) => path.startsWith(`${folder}/`))
    .map(([path, content]) => [path.slice(folder.length + 1), content] as const);
  const made = await given({ "handler.js": handler, ...Object.fromEntries(own) }, { npmConfig });
  const directory = write(temporaryDirectory(), repository);
  const monorepo = { directory, folder, isWorkspace: false, packages: [], ...options };
  const pull = async () => {
    const dir = join(temporaryDirectory(), "image");
    const build = { ...made.build, monorepo, scratch: temporaryDirectory() };
    await pullImage(made.client, (await buildFunctionImage(build)).image, dir);
    const app = join(dir, "usr/src/app");
    const program = `console.log(require("./handler.js").main())`;
    const run = () =>
      execFileSync(process.execPath, ["-e", program], { cwd: join(app, "function") })
        .toString()
        .trim();
    return { app, run };
  };
  return { pull, directory, requests };
}

describe("a workspace", () => {
  const options = { isWorkspace: true, packages: ["packages/deep", "packages/shared"] };

  test("finds its siblings in the image, with the versions of the root's lock file", async () => {
    const { pull } = await built(workspaces, "apps/fn", options);
    const { app, run } = await pull();
    expect(run()).toBe("shared, greeting 1.0.0, deep");
    expect(readlinkSync(join(app, "node_modules/@mono/shared"))).toBe(
      "../../workspaces/packages/shared",
    );
    expect(readdirSync(join(app, "workspaces/packages")).sort()).toEqual(["deep", "shared"]);
    expect(readdirSync(join(app, "node_modules")).sort()).toEqual(["@mono", "fn", "greeting"]);
  });

  test("whose sibling is edited installs nothing", async () => {
    const { pull, directory, requests } = await built(workspaces, "apps/fn", options);
    await pull();
    const asked = requests();
    write(directory, { "packages/deep/index.js": `module.exports = "deeper";` });
    expect((await pull()).run()).toBe("shared, greeting 1.0.0, deeper");
    expect(requests()).toBe(asked);
  });

  test("gets what it uses without declaring it, beside what is locked", async () => {
    const files = { ...workspaces, "apps/fn/handler.js": `${handler} require("axios");` };
    const { pull } = await built(files, "apps/fn", options);
    const { app, run } = await pull();
    expect(run()).toBe("shared, greeting 1.0.0, deep");
    const installed = ["@mono", "axios", "fn", "greeting"];
    expect(readdirSync(join(app, "node_modules")).sort()).toEqual(installed);
  });

  test("may have a link out in a sibling no more than in itself", async () => {
    const { pull, directory } = await built(workspaces, "apps/fn", options);
    symlinkSync("/etc/passwd", join(directory, "packages/deep/stolen"));
    await expect(pull()).rejects.toThrow("stolen is a link that leaves the source");
  });
});

test("folders that are no workspaces come along, with dependencies of their own", async () => {
  const repository: Files = {
    "fn/package.json": json({ name: "fn", dependencies: { "@mono/shared": "file:../shared" } }),
    "shared/package.json": json({
      name: "@mono/shared",
      version: "1.0.0",
      dependencies: { greeting: "^1", "@mono/deep": "file:../deep" },
    }),
    "shared/index.js": shared,
    "deep/package.json": json({ name: "@mono/deep", version: "1.0.0" }),
    "deep/index.js": `module.exports = "deep";`,
    "fn/lib/call.js": `require("axios")`,
  };
  const { pull } = await built(repository, "fn", { packages: ["deep", "shared"] });
  const { app, run } = await pull();
  expect(run()).toBe("shared, greeting 1.0.0, deep");
  const installed = readdirSync(join(app, "function/node_modules")).sort();
  expect(installed).toEqual(["@mono", "axios"]);
  expect(readlinkSync(join(app, "function/node_modules/@mono/shared"))).toBe(
    "../../../workspaces/shared",
  );
  expect(readFileSync(join(app, "workspaces/shared/index.js"), "utf8")).toBe(shared);
});

test.each<[string, Files]>([
  ["workspaces", workspaces],
  [
    "folders that are no workspaces",
    {
      ...workspaces,
      "package.json": json({
        name: "mono",
        dependencies: { "@mono/shared": "file:packages/shared", greeting: "2" },
      }),
      "package-lock.json": "",
      "packages/shared/package.json": json({
        name: "@mono/shared",
        version: "1.0.0",
        dependencies: { greeting: "1", "@mono/deep": "file:../deep" },
      }),
    },
  ],
])("a source with %s of its own has them where they are", async (_, repository) => {
  const { npmConfig } = await startNpmRegistry({ packages });
  const { "package-lock.json": lock, ...others } = repository;
  const files = {
    ...others,
    ...(lock ? { "package-lock.json": lock } : {}),
    "handler.js": handler,
  };
  const { build, client } = await given(files, { npmConfig });
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  const cwd = join(dir, "usr/src/app/function");
  const program = `console.log(require("./handler.js").main())`;
  const said = execFileSync(process.execPath, ["-e", program], { cwd, encoding: "utf8" });
  expect(said.trim()).toBe("shared, greeting 1.0.0, deep");
  expect(readlinkSync(join(cwd, "node_modules/@mono/shared"))).toBe("../../packages/shared");
});

/** A package that is a file. */
async function archive(name: string, text: string): Promise<Buffer> {
  const manifest = json({ name, version: "1.0.0" });
  const files = { "package.json": manifest, "index.js": `module.exports = ${json(text)};` };
  const { body } = await createLayer(
    Object.entries(files).map(([path, content]) => ({ path: `package/${path}`, content })),
  );
  return Buffer.from(body?.open() as Uint8Array);
}

test("packages that are archives in the repository are installed, and again when they change", async () => {
  const own = { near: "file:vendor/near.tgz", far: "file:../far-1.0.0.tgz" };
  const files = {
    "fn/package.json": json({ name: "fn", dependencies: own }),
    "fn/vendor/near.tgz": await archive("near", "near"),
    "fn/handler.js": `exports.main = () => require("near") + " and " + require("far");`,
    "far-1.0.0.tgz": await archive("far", "far"),
  };
  const { pull, directory } = await built(files, "fn", { packages: [] });
  expect((await pull()).run()).toBe("near and far");
  write(directory, { "far-1.0.0.tgz": await archive("far", "further") });
  expect((await pull()).run()).toBe("near and further");
});

test("a source without a repository has archives too", async () => {
  const { npmConfig } = await startNpmRegistry();
  const files = {
    "package.json": json({ dependencies: { near: "file:./vendor/near.tgz" } }),
    "vendor/near.tgz": await archive("near", "near"),
  };
  const { build, client } = await given(files, { npmConfig });
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  const installed = join(dir, "usr/src/app/function/node_modules/near/index.js");
  expect(readFileSync(installed, "utf8")).toContain("near");
});

test.each([
  { root: "../up", folder: "fn", packages: [] },
  { root: "", folder: "/etc", packages: [] },
  { root: "", folder: "fn", packages: ["a/../../b"] },
  { root: "", folder: "", packages: [] },
  undefined,
  "text",
])("a description that leads out is none: %j", (value) => {
  expect(parseMonorepo(value, "/scratch")).toBeUndefined();
});
