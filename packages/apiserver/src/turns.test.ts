import { afterAll, beforeAll, expect, test } from "vitest";
import { type ApiServer, createApiServer } from "./index.ts";
import { atOnce, inTurns, turn } from "./turns.ts";

let server: ApiServer;
beforeAll(async () => {
  server = await createApiServer({ dataDir: ":memory:" });
});
afterAll(() => server.close());

const configMaps = "/api/v1/namespaces/default/configmaps";

function body(name: string, letter: string, fields: number): string {
  const data = Object.fromEntries(
    Array.from({ length: fields }, (_, index) => [`${letter}-${index}`, ""]),
  );
  return JSON.stringify({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });
}

async function send(method: string, path: string, text: string, type = "application/json") {
  const headers = { "content-type": type };
  const request = new Request(`http://kubernetes.internal${path}`, { method, headers, body: text });
  const response = await server.transport()(request);
  return { code: response.status, text: await response.text() };
}

/** Processor time of this thread in milliseconds: other processes do not count. */
function busy(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** What the work takes altogether, and at most without a chance for others. */
async function measured(work: () => Promise<void>): Promise<{ total: number; longest: number }> {
  let longest = 0;
  let last = busy();
  const begun = last;
  const look = () => {
    const now = busy();
    longest = Math.max(longest, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  await work();
  clearInterval(timer);
  look();
  return { total: last - begun, longest };
}

test("work that is not large is done at once", async () => {
  function* steps() {
    yield;
    yield;
    return 3;
  }
  expect(atOnce(steps())).toBe(3);
  let isLater = false;
  setImmediate(() => (isLater = true));
  expect(await inTurns(steps(), false)).toBe(3);
  expect(isLater).toBe(false);
});

test("between two steps timers and input come in, and requests take turns", async () => {
  const order: string[] = [];
  const request = async (name: string) => {
    for (const step of [1, 2]) {
      await turn();
      order.push(`${name}${step}`);
      setImmediate(() => order.push("other"));
    }
  };
  await Promise.all([request("a"), request("b")]);
  expect(order.slice(0, 7)).toEqual(["a1", "other", "b1", "other", "a2", "other", "b2"]);
});

test.each([
  ["a creation", "POST", configMaps, "application/json"],
  ["an update", "PUT", `${configMaps}/first`, "application/json"],
  [
    "an apply",
    "PATCH",
    `${configMaps}/first?fieldManager=f&force=true`,
    "application/apply-patch+yaml",
  ],
])("%s of many fields lets others in", async (_, method, path, type) => {
  const fields = 40_000;
  await send("POST", configMaps, body("first", "a", fields));
  const text = body(method === "POST" ? "second" : "first", "b", fields);
  const { total, longest } = await measured(async () => {
    const { code, text: answer } = await send(method, path, text, type);
    expect(code, answer.slice(0, 300)).toBeLessThan(300);
  });
  expect(longest).toBeLessThan(total * 0.4);
});

test("what a patch adds counts, too", async () => {
  await send("POST", configMaps, body("grown", "a", 60_000));
  const patch = body("grown", "b", 60_000);
  const { code, text } = await send(
    "PATCH",
    `${configMaps}/grown`,
    patch,
    "application/merge-patch+json",
  );
  expect(text).toContain("more than 100000 fields");
  expect(code).toBe(413);
});

test("an object of many fields can be sent back as it was read, with who manages them", async () => {
  await send("POST", configMaps, body("back", "a", 60_000));
  const read = await server.transport()(
    new Request(`http://kubernetes.internal${configMaps}/back`),
  );
  expect((await send("PUT", `${configMaps}/back`, await read.text())).code).toBe(200);
});
