import { expect, test } from "vitest";
import { KubeClient } from "./client.ts";
import { resources } from "./resources.ts";

test("a body is written as Go writes it: kube-apiserver compares the text of what has no schema", async () => {
  const bodies: string[] = [];
  const client = new KubeClient(async (request) => {
    bodies.push(await request.text());
    return Response.json({});
  });
  const text = "<a> & \u2028\u2029 é \b\f";
  await client.create(resources.configMaps, { metadata: { name: "a" }, data: { text } });
  expect(bodies[0]).toContain(String.raw`"text":"\u003ca\u003e \u0026 \u2028\u2029 é \b\f"`);
  expect(JSON.parse(bodies[0] ?? "").data.text).toBe(text);
});
