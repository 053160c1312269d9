import { expect, test, vi } from "vitest";
import {
  assembleImage,
  buildFunctionImage,
  createLayer,
  createLogins,
  type Login,
  parseImageName,
  pushImage,
  RegistryClient,
} from "../index.ts";
import { given } from "../testing/build.ts";
import { startNpmRegistry } from "../testing/npm-registry.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const withGreeting = {
  "handler.js": "module.exports = { main: () => 1 };",
  "package.json": '{"dependencies":{"greeting":"^1.0.0"}}',
};

/** The name of the one layer in a cache. */
async function tagIn(cache: string, login?: Login): Promise<string> {
  const { host, repository } = parseImageName(cache);
  const pair = Buffer.from(`${login?.username}:${login?.password}`).toString("base64");
  const headers = login ? { authorization: `Basic ${pair}` } : {};
  const answer = await fetch(`http://${host}/v2/${repository}/tags/list`, { headers });
  return ((await answer.json()) as { tags: string[] }).tags[0] ?? "";
}

/** Puts something else in the place of that layer. */
async function poison(client: RegistryClient, cache: string, tag: string): Promise<void> {
  const layers = [await createLayer([{ path: "poison", content: "foreign" }])];
  await pushImage(client, assembleImage({ layers }), parseImageName(`${cache}:${tag}`));
}

test("does not take other dependencies from the cache than the Function's image had", async () => {
  const { npmConfig } = await startNpmRegistry();
  const { build, client, lines } = await given(withGreeting, { npmConfig });
  const first = await buildFunctionImage(build);
  const cache = build.dependencyCache ?? "";
  await poison(client, cache, await tagIn(cache));
  const previousImage = parseImageName(first.image).digest;
  const second = await buildFunctionImage({ ...build, previousImage });
  expect(second.image).toBe(first.image);
  expect(lines).toContain(
    "the cache has other dependencies than the image before: they are installed again",
  );
});

test("a name in the cache that is taken meanwhile is left alone", async () => {
  const { npmConfig } = await startNpmRegistry();
  const logins = createLogins("k".repeat(64));
  const expiresAt = Date.now() + 60_000;
  const job = { name: "j", uid: "1" };
  const login = logins.build({ namespace: "shop", uid: "1", function: "hello", job, expiresAt });
  const { build, host } = await given(withGreeting, { npmConfig }, { logins });
  const as = (user: Login) => new RegistryClient({ attempts: 1, credentials: () => user });
  const cache = `${host}/shop/dependencies.cache/nodejs24`;
  const own = { ...build, destination: `${host}/shop/hello:1`, dependencyCache: cache };
  const first = await buildFunctionImage({ ...own, client: as(login) });
  const platform = as(logins.platform());
  await poison(platform, cache, await tagIn(cache, logins.platform()));
  const previousImage = parseImageName(first.image).digest;
  const second = await buildFunctionImage({ ...own, client: as(login), previousImage });
  expect(second.image).toBe(first.image);
});
