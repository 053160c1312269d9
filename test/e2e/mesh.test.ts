/** A namespace with Istio's sidecars (a stand-in): builds go without, Functions and calls between them go through. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Mesh, type MeshStyle, startMesh } from "../support/mesh.ts";
import { redirectPods, whyNotRedirected } from "../support/mesh-redirect.ts";
import { functionManifest, Platform } from "../support/platform.ts";

const platform = new Platform();
let mesh: Mesh;
beforeAll(async () => {
  [mesh] = await Promise.all([startMesh(), platform.start()]);
  await platform.k("create namespace shop");
  await platform.k("label namespace shop istio-injection=enabled");
  await platform.k("apply -f -", JSON.stringify(mesh.configuration));
}, 180_000);
afterAll(async () => {
  await platform.remove();
  await mesh.close();
});

const shows = `module.exports = { main: (event) => JSON.stringify(event.extensions.request.headers) };`;
const calls = `module.exports = { async main(event) {
  const answer = await fetch(event.extensions.request.query.url);
  return { status: answer.status, out: answer.headers.get("x-mesh-out"), in: answer.headers.get("x-mesh-in"), body: await answer.text() };
} };`;

const styles: MeshStyle[] = [
  "container",
  "native",
  ...(whyNotRedirected ? [] : ["redirect" as const]),
];

test.skipIf(whyNotRedirected === "")(`packets are not redirected${whyNotRedirected}`, () => {});

describe.each(styles)("with the sidecar as a %s", (style) => {
  const over = new AbortController();
  beforeAll(() => {
    if (style === "redirect") void redirectPods(platform, "shop", over.signal);
  });
  afterAll(() => over.abort());
  const [near, caller] = [`near-${style}`, `caller-${style}`];

  test("a Function is built without it, runs with it, and is called through it", async () => {
    mesh.style = style;
    for (const [name, source] of [
      [near, shows],
      [caller, calls],
    ] as const)
      await platform.k("apply -f -", functionManifest(name, source, {}, { namespace: "shop" }));
    await platform.k(
      `wait -n shop --for=condition=Running function/${near} function/${caller} --timeout=110s`,
    );
    const label = `serverless.kyma-project.io/function-name=${near}`;
    const pods = `get pods -n shop -l ${label},serverless.kyma-project.io/resource=deployment`;
    const path = style === "native" ? "initContainers" : "containers";
    expect(await platform.k(`${pods} -o jsonpath={.items[0].spec.${path}[*].name}`)).toContain(
      "istio-proxy",
    );
    expect(mesh.asked.injected.some((name) => name.startsWith(near))).toBe(true);
    expect(mesh.asked.left.some((name) => name.includes("build"))).toBe(true);
    expect(mesh.asked.injected.some((name) => name.includes("build"))).toBe(false);
    const answer = await platform.call(`${near}.shop`);
    expect(answer).toMatchObject({ status: 200, headers: { "x-mesh-in": "1" } });
    expect(JSON.parse(answer.body)).toMatchObject({ "x-mesh-in": "1" });
  });

  test("calls between Functions go out through one and in through the other", async () => {
    const url = encodeURIComponent(`http://${near}.shop.svc.cluster.local/`);
    const { body } = await platform.call(`${caller}.shop`, { path: `/?url=${url}` });
    expect(JSON.parse(body)).toMatchObject({ status: 200, out: "1", in: "1" });
  });

  test("a change and a deletion leave nothing behind", async () => {
    const changed = `module.exports = { main: () => "changed" };`;
    await platform.k("apply -f -", functionManifest(near, changed, {}, { namespace: "shop" }));
    await platform.callUntil(`${near}.shop`, ({ body }) => body === "changed");
    await platform.k(`delete function -n shop ${near} ${caller}`);
    const left = () => platform.k("get pods -n shop -o name");
    await expect.poll(left, { timeout: 90_000 }).toBe("");
  });
});
