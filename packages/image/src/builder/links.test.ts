/** Symbolic links of a source: what stays, and what is refused by name. Which is which has its rows in `@spry/function`. */
import { lstatSync, mkdirSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { type Files, given } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { messageOf } from "./user-error.ts";

vi.setConfig({ testTimeout: 120_000 });

async function built(files: Files, links: Record<string, string>) {
  const { build, client, lines } = await given(files);
  for (const [name, target] of Object.entries(links)) {
    mkdirSync(dirname(join(build.source, name)), { recursive: true });
    symlinkSync(target, join(build.source, name));
  }
  const { image } = await buildFunctionImage(build);
  const directory = join(temporaryDirectory(), "image");
  await pullImage(client, image, directory);
  return { directory: join(directory, "usr/src/app/function"), lines };
}

test("links inside the source are in the image as they are", async () => {
  const links = {
    link: "code",
    "index.js": "handler.js",
    "code/deep/up": "..",
    chain: "link/deep",
    "a\nb": "handler.js",
    greeting: "node_modules/greeting",
  };
  const files = { "handler.js": "module.exports = { main: () => 1 };", "code/deep/a.js": "deep" };
  const { directory } = await built(files, links);
  for (const [name, target] of Object.entries(links))
    expect(readlinkSync(join(directory, name))).toBe(target);
  expect(lstatSync(join(directory, "handler.js")).isFile()).toBe(true);
  expect(readFileSync(join(directory, "chain/up/deep/a.js"), "utf8")).toBe("deep");
});

test("TypeScript that is compiled is also found by a link to it", async () => {
  const { directory } = await built(
    { "src/color.ts": "export enum Color { Red = 1 }\n" },
    { "handler.ts": "src/color.ts" },
  );
  expect(readlinkSync(join(directory, "handler.ts"))).toBe("src/color.ts");
  expect(readFileSync(join(directory, "handler.ts"), "utf8")).toContain("sourceMappingURL");
});

test("links that a build script makes are kept, absolute ones inside as relative ones", async () => {
  const script =
    'mkdir -p dist/lib && echo 1 > dist/lib/a.js && ln -s "$PWD/dist/lib" dist/all && ln -s dist/lib/a.js handler.js';
  const { directory } = await built(
    { "package.json": JSON.stringify({ scripts: { build: script } }) },
    {},
  );
  expect(readlinkSync(join(directory, "dist/all"))).toBe("lib");
  expect(readFileSync(join(directory, "handler.js"), "utf8")).toBe("1\n");
});

test.each<[name: string, target: string, why: string]>([
  ["b.js", "../x.js", "b.js is a link that leaves the source, to ../x.js"],
  ["lib/b", "../../source", "lib/b is a link that leaves the source, to ../../source"],
  ["b", "/", "b is a link that leaves the source, to /"],
  ["b", "b", "b is a link to b, which leads in a circle"],
  ["b", "./lib/../b/x", "b is a link to ./lib/../b/x, which leads in a circle"],
  ["b", "handler.js/x", "b is a link whose target does not exist, handler.js/x"],
  ["b", ".git/config", "b is a link whose target does not exist, .git/config"],
])("a link is refused by name: %s to %s", async (name, target, why) => {
  const failure = await built({ "handler.js": "", "lib/a.js": "" }, { [name]: target }).catch(
    (error: unknown) => error,
  );
  expect(messageOf(failure)).toContain(`source: ${why}`);
});

test("what is left out because of its name has a line in the build's log", async () => {
  const files = {
    "handler.js": "",
    "node_modules/x/a.js": "",
    "lib/__pycache__/a.pyc": "",
    "..own": "1",
  };
  const { directory, lines } = await built(files, {});
  expect(lines[0]).toBe(
    'left out of the source, because of their names: "lib/__pycache__", "node_modules"',
  );
  expect(readFileSync(join(directory, "..own"), "utf8")).toBe("1");
});
