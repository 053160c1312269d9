/** Functions under the gateway's own host, and what the gateway shows of itself to browsers and to programs. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, startBench } from "../testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await startBench();
});
afterEach(() => bench.close());

const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };
const local = () => `localhost:${bench.port}`;

async function running(headers: Record<string, string | string[]> = {}, status = 200) {
  const pod = await bench.pod((request, response) => {
    response.writeHead(status, headers).end(request.url);
  });
  await bench.service();
  await bench.endpoints([pod]);
  return pod;
}

describe("a Function by path", () => {
  test("gets the rest of the path and the query, and learns of the prefix", async () => {
    const pod = await running();
    const answer = await bench.call({ host: local(), path: "/fn/default/hello/a%20b?x=1" });
    expect(answer).toMatchObject({ status: 200, body: "/a%20b?x=1" });
    expect(pod.seen[0]?.headers["x-forwarded-prefix"]).toBe("/fn/default/hello");
    const rest = await bench.call({ host: "127.0.0.1", path: "/fn/default/hello/" });
    expect(rest).toMatchObject({ status: 200, body: "/" });
  });

  test("is a directory, so that relative links lead below it", async () => {
    await running();
    const answer = await bench.call({ host: local(), path: "/fn/default/hello?x=1" });
    expect(answer.status).toBe(308);
    expect(answer.headers["location"]).toBe("/fn/default/hello/?x=1");
  });

  test("neither gets nor sets what belongs to the origin of all Functions", async () => {
    const pod = await running({
      "set-cookie": ["a=1", "b=2"],
      "service-worker-allowed": "/",
      "clear-site-data": '"*"',
      "content-security-policy": "script-src 'none'",
      location: "/next",
    });
    const path = "/fn/default/hello/";
    const { headers } = await bench.call({
      host: local(),
      path,
      headers: { cookie: "session=of-another", "x-forwarded-prefix": "/lie" },
    });
    expect(headers["set-cookie"]).toBeUndefined();
    expect(headers["service-worker-allowed"]).toBeUndefined();
    expect(headers["clear-site-data"]).toBeUndefined();
    expect(headers["content-security-policy"]).toBe("script-src 'none', sandbox allow-scripts");
    expect(headers["location"]).toBe("/fn/default/hello/next");
    expect(pod.seen[0]?.headers.cookie).toBeUndefined();
    expect(pod.seen[0]?.headers["x-forwarded-prefix"]).toBe("/fn/default/hello");
  });

  test("exists on this machine's own hosts alone", async () => {
    await running();
    for (const host of ["evil.example.com", "localhost.example.com", "10.0.0.1"])
      expect((await bench.call({ host, path: "/fn/default/hello/" })).status).toBe(404);
    // The Function's own path of that form is its own.
    const own = await bench.call({ path: "/fn/default/other/" });
    expect(own).toMatchObject({ status: 200, body: "/fn/default/other/" });
  });

  test("is not found by forms that are none", async () => {
    await running();
    for (const path of ["/fn/default", "/fn//hello/", "/fn/DEFAULT/hello/", "/fn/../hello/"])
      expect((await bench.call({ host: local(), path })).status).toBe(404);
    const missing = await bench.call({ host: local(), path: "/fn/default/nope/" });
    expect(missing.headers["x-spry-reason"]).toBe("FunctionNotFound");
  });
});

describe("the gateway's root", () => {
  const failed = {
    type: "Running",
    status: "False",
    reason: "Crashed",
    message: "it <b>failed</b>\nat a path",
    lastTransitionTime: new Date().toISOString(),
  } as never;

  test("lists the Functions: a page for browsers, JSON or text for programs", async () => {
    await bench.fn([failed]);
    const page = await bench.call({ host: local(), headers: browser });
    expect(page.status).toBe(200);
    expect(page.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(page.headers["content-security-policy"]).toContain("default-src 'none'");
    expect(page.body).toContain(`http://hello.default.localhost:${bench.port}/`);
    expect(page.body).toContain("it &lt;b&gt;failed&lt;/b&gt;");
    expect(page.body).not.toContain("at a path");
    const json = await bench.call({ host: local(), headers: { accept: "application/json" } });
    expect(JSON.parse(json.body).functions).toMatchObject([
      { name: "hello", state: "failed", path: "/fn/default/hello/" },
    ]);
    expect((await bench.call({ host: local() })).body).toMatch(/^http:\S+ failed: it <b>/);
  });

  test("does so on this machine's own hosts alone", async () => {
    await bench.fn();
    const answer = await bench.call({ host: "evil.example.com" });
    expect(answer.status).toBe(404);
    expect(answer.body).not.toContain("hello.default");
  });
});

describe("an error of the gateway's own", () => {
  test("has none of the control characters that a Function's code has written into its reason", async () => {
    const message = "it \u001b]0;owned\u0007 failed \u009b2J\u202e";
    const condition = { type: "Running", status: "False", reason: "Failed", message };
    await bench.fn([condition] as never);
    await bench.service();
    const index = await bench.call({ host: local() });
    expect(index.body).toMatch(/failed: it .*owned/);
    const error = await bench.call({ host: "hello.default.localhost" });
    expect(error).toMatchObject({ status: 503, body: expect.stringContaining("owned") as string });
    const pages = await bench.call({ host: local(), headers: browser });
    const json = await bench.call({ host: local(), headers: { accept: "application/json" } });
    for (const { body } of [index, error, pages, json])
      expect(body).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
  });

  test("is a page for browsers, with everything escaped", async () => {
    const { status, headers, body } = await bench.call({ host: "<b>", headers: browser });
    expect(status).toBe(404);
    expect(headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(body).toContain("404 UnknownHost");
    expect(body).not.toContain("<b>");
  });
});
