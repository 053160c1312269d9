import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";

let server: ApiServer;
beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
});
afterAll(() => server.close());

const seed = 20_261;
const root = "http://x/api/v1/namespaces/default";
const good = JSON.stringify({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "fuzz", labels: { a: "b" } },
  data: { key: "value" },
});
const json = "application/json";
const types = [
  json,
  "application/yaml",
  "application/json-patch+json",
  "application/merge-patch+json",
  "application/strategic-merge-patch+json",
  "application/apply-patch+yaml",
  "application/vnd.kubernetes.protobuf",
  "text/plain",
];

/** A good body with a piece of it replaced by anything. */
const damaged = fc
  .tuple(fc.nat(good.length), fc.nat(20), fc.string({ unit: "binary", maxLength: 12 }))
  .map(([at, count, text]) => good.slice(0, at) + text + good.slice(at + count));
const body = fc.oneof(damaged, fc.json({ maxDepth: 6 }), fc.string({ unit: "binary" }));
const segment = fc.oneof(
  fc.constantFrom("configmaps", "pods", "..", "%2f", "%00", "%2e%2e", "", "//", "fuzz", "status"),
  fc.string({ maxLength: 8 }).map(encodeURIComponent),
);
const parameter = fc
  .tuple(
    fc.constantFrom("labelSelector", "fieldSelector", "limit", "continue", "resourceVersion"),
    fc.string({ unit: "binary", maxLength: 12 }),
  )
  .map(([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`);
const request = fc.record({
  method: fc.constantFrom("GET", "POST", "PUT", "PATCH", "DELETE"),
  path: fc.array(segment, { maxLength: 4 }).map((parts) => parts.join("/")),
  query: fc.array(parameter, { maxLength: 2 }).map((parts) => parts.join("&")),
  type: fc.constantFrom(...types),
  body,
});

test("no request makes the server fail, hang or write what it refuses", async () => {
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, query, type, body: text }) => {
      const before = await list();
      const hasBody = method !== "GET";
      const response = await server.transport()(
        new Request(`${root}/${path}?${query}`, {
          method,
          headers: { "content-type": type },
          ...(hasBody && { body: text.toWellFormed() }),
        }),
      );
      const told = await response.text();
      expect(told).not.toContain("Internal error occurred");
      if (response.ok) return;
      expect(response.status).toBeGreaterThanOrEqual(400);
      expect(await list()).toBe(before);
    }),
    { seed, numRuns: 600 },
  );
}, 60_000);

async function list(): Promise<string> {
  const response = await server.transport()(new Request(`${root}/configmaps`));
  const { items } = (await response.json()) as { items: unknown[] };
  return JSON.stringify(items);
}
