/** A runtime whose interpreter the machine lacks: fetched as an npm package when it is first needed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { functionManifest, Platform } from "../support/platform.ts";

const platform = new Platform();
beforeAll(async () => void (await platform.start()));
afterAll(() => platform.remove());

const source = `module.exports = { main: () => process.versions.node.split(".")[0] };`;

test.each(["22", "24"])("nodejs%s runs on its own major of Node.js", async (major) => {
  await platform.k(
    "apply -f -",
    functionManifest(`node${major}`, source, { runtime: `nodejs${major}` }),
  );
  await platform.k(`wait --for=condition=Running function/node${major} --timeout=110s`);
  expect(await platform.call(`node${major}.default`)).toMatchObject({ status: 200, body: major });
  if (major === "22") {
    expect(await platform.k("get events -o jsonpath={.items[*].message}")).toContain(
      "Installing Node.js 22",
    );
  }
});

test("nodejs26 hands its handler the request and the response", async () => {
  const own = `module.exports = { main: (req, res) => res.send(process.versions.node.split(".")[0] + " " + req.query.a) };`;
  await platform.k("apply -f -", functionManifest("node26", own, { runtime: "nodejs26" }));
  await platform.k("wait --for=condition=Running function/node26 --timeout=110s");
  expect(await platform.call("node26.default", { path: "/?a=b" })).toMatchObject({
    status: 200,
    body: "26 b",
  });
});

test.each([
  ["nodejs22", "() => Color[major]"],
  ["nodejs26", "(_: unknown, res: Response) => res.send(Color[major])"],
])("%s runs TypeScript with an enum, which is compiled for it", async (runtime, main) => {
  const typed = `enum Color { Green = 22, Blue = 26 }
interface Response { send(text: string): void }
const major = Number.parseInt(process.versions.node);
export const main = ${main};`;
  const name = `typed-${runtime}`;
  await platform.k("apply -f -", functionManifest(name, typed, { runtime }));
  await platform.k(`wait --for=condition=Running function/${name} --timeout=110s`);
  const body = runtime === "nodejs22" ? "Green" : "Blue";
  expect(await platform.call(`${name}.default`)).toMatchObject({ status: 200, body });
});

test("the runtime has bytecode for the Node.js that runs Spry", async () => {
  const list = `module.exports = { main: () => require("node:fs").readdirSync(__dirname + "/..").filter((name) => name.endsWith(".bytecode")).join() };`;
  await platform.k("apply -f -", functionManifest("bytecode", list, { runtime: "nodejs24" }));
  await platform.k("wait --for=condition=Running function/bytecode --timeout=110s");
  const body = `runtime-${process.version}-${process.arch}.bytecode`;
  expect(await platform.call("bytecode.default")).toMatchObject({ status: 200, body });
});
