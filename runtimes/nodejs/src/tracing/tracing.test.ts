import { Agent, createServer, get } from "node:http";
import { connect } from "node:net";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { startCollector } from "../testing/collector.ts";
import { send, startFunction } from "../testing/running-function.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const show = `exports.main = (event) => {
  const { traceparent, tracestate, "x-b3-traceid": trace, "x-b3-spanid": span, "x-b3-sampled": sampled } = event.extensions.request.headers;
  return { traceparent, tracestate, trace, span, sampled };
};`;
const call = `const http = require("node:http");
const viaHttp = (url) => new Promise((resolve) => http.get(url, (r) => { let t = ""; r.on("data", (c) => t += c).on("end", () => resolve(JSON.parse(t))); }));
const viaFetch = async (url) => (await fetch(url)).json();
`;

describe("a trace", () => {
  const incoming: { name: string; headers: Record<string, string>; sampled: string }[] = [
    {
      name: "W3C",
      headers: { traceparent: `00-${traceId}-${spanId}-01`, tracestate: "a=1" },
      sampled: "1",
    },
    {
      name: "B3",
      headers: { "x-b3-traceid": traceId, "x-b3-spanid": spanId, "x-b3-sampled": "0" },
      sampled: "0",
    },
    { name: "B3 in one header", headers: { b3: `${traceId}-${spanId}-1` }, sampled: "1" },
  ];
  test.each(incoming)(
    "by $name goes on in what the Function sends",
    async ({ headers, sampled }) => {
      const target = await startFunction(show);
      const { url } = await startFunction(
        `${call} exports.main = async () => { await null; return [await viaHttp("${target.url}"), await viaFetch("${target.url}")]; };`,
      );
      const expected = {
        traceparent: `00-${traceId}-${spanId}-0${sampled}`,
        trace: traceId,
        span: spanId,
        sampled,
        ...(headers["tracestate"] && { tracestate: "a=1" }),
      };
      expect(JSON.parse((await send(url, { headers })).body)).toEqual([expected, expected]);
    },
  );
});

test.each<[string, Record<string, string>]>([
  ["no trace", {}],
  ["a trace that is none", { traceparent: `00-${"0".repeat(32)}-${spanId}-01` }],
  ["a wish for one", { "x-b3-sampled": "1" }],
])("a trace begins in what a Function sends that was asked with %s", async (_name, headers) => {
  const target = await startFunction(show);
  const { url } = await startFunction(
    `${call} exports.main = async () => { await null; return [await viaHttp("${target.url}"), await viaFetch("${target.url}")]; };`,
  );
  const sent = JSON.parse((await send(url, { headers })).body) as Record<string, string>[];
  for (const { traceparent = "", trace, span, sampled } of sent) {
    expect(traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect({ trace, span, sampled }).toEqual({
      trace: traceparent.slice(3, 35),
      span: traceparent.slice(36, 52),
      sampled: "1",
    });
  }
  expect(sent).toHaveLength(2);
});

test("a trace ends with its request, also for the next one on the same connection", async () => {
  const target = await startFunction(show);
  const { url } = await startFunction(
    `${call} exports.main = async () => (await viaHttp("${target.url}")).trace;`,
  );
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const head = "GET / HTTP/1.1\r\nhost: x\r\n";
  const trace = `traceparent: 00-${traceId}-${spanId}-01\r\n`;
  let answers = "";
  socket.on("data", (data: Buffer) => (answers += data.toString()));
  const seen = () =>
    Array.from(answers.matchAll(/\r\n\r\n([0-9a-f]{32})/g), ([, id]) => id === traceId);
  // The first makes the runtime load what traces need: from then on several in one packet are answered at once.
  socket.write(`${head}${trace}\r\n`);
  await expect.poll(seen).toEqual([true]);
  socket.write(`${head}${trace}\r\n${head}\r\n${head}${trace}\r\n${head}\r\n`);
  await expect.poll(seen).toEqual([true, true, false, true, false]);
});

describe("with a collector", () => {
  test("each answer is a span, the parent of the Function's own", async () => {
    const collector = await startCollector();
    const target = await startFunction(show);
    const { url } = await startFunction(
      `${call} exports.main = async ({ tracer }) => tracer.startActiveSpan("work", { attributes: { n: 1 } }, async (span) => {
        span.addEvent("begun");
        const seen = await viaFetch("${target.url}");
        span.end();
        if (seen.sampled !== "1") throw new Error(JSON.stringify(seen));
        return seen;
      });`,
      { TRACE_COLLECTOR_ENDPOINT: collector.endpoint },
    );
    const headers = { traceparent: `00-${traceId}-${spanId}-01` };
    const seen = JSON.parse((await send(`${url}/a`, { headers })).body) as { traceparent: string };
    await expect.poll(() => collector.spans.length).toBe(2);
    const [work, server] = collector.spans;
    expect(server).toMatchObject({ traceId, parentSpanId: spanId, name: "GET", kind: 2 });
    expect(server?.attributes).toContainEqual({
      key: "http.response.status_code",
      value: { intValue: "200" },
    });
    expect(work).toMatchObject({ traceId, parentSpanId: server?.spanId, name: "work", kind: 1 });
    expect(work?.attributes).toEqual([{ key: "n", value: { intValue: "1" } }]);
    expect(work?.events.map(({ name }) => name)).toEqual(["begun"]);
    expect(seen.traceparent).toBe(`00-${traceId}-${work?.spanId}-01`);
    expect(collector.services).toContainEqual([
      { key: "service.name", value: { stringValue: "hello" } },
    ]);
  });

  test("failures are marked, callers that are not sampled are left out, and the last spans are sent", async () => {
    const collector = await startCollector();
    const fn = await startFunction(`exports.main = () => { throw new Error("x"); };`, {
      TRACE_COLLECTOR_ENDPOINT: collector.endpoint,
    });
    await send(fn.url, { headers: { traceparent: `00-${traceId}-${spanId}-00` } });
    await send(fn.url);
    fn.process.kill("SIGTERM");
    await fn.exited;
    expect(collector.spans.map(({ status }) => status.code)).toEqual([2]);
  });

  test("no answer is without its span, and what goes on behind an answer is part of it", async () => {
    const collector = await startCollector();
    const { url } = await startFunction(
      `exports.main = (event) => {
        const { path } = event.extensions.request;
        if (path === "/later") setTimeout(() => event.tracer.startSpan("later").end(), 50);
        if (path === "/fails") throw new Error("x");
        return "ok";
      };`,
      { TRACE_COLLECTOR_ENDPOINT: collector.endpoint },
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    onTestFinished(() => agent.destroy());
    const ask = (target: string) =>
      new Promise((resolve, reject) => {
        get(`${url}${target}`, { agent }, (answer) => answer.resume().once("end", resolve)).once(
          "error",
          reject,
        );
      });
    const paths = Array.from({ length: 3000 }, (_, index) => `/${index % 100 ? "ö?a=1" : "fails"}`);
    await Promise.all([...paths, "/later"].map((each) => ask(encodeURI(each))));
    await expect.poll(() => collector.spans.length).toBe(3002);
    const { spans } = collector;
    expect(new Set(spans.map(({ spanId: id }) => id)).size).toBe(3002);
    expect(new Set(spans.map(({ traceId: id }) => id)).size).toBe(3001);
    expect(spans.filter(({ status }) => status.code === 2)).toHaveLength(30);
    for (const { traceId: id, startTimeUnixNano: start, endTimeUnixNano: end } of spans) {
      expect(id).toMatch(/^[0-9a-f]{32}$/);
      expect(Math.abs(Number(start) / 1e6 - Date.now())).toBeLessThan(60_000);
      expect(Number(end)).toBeGreaterThanOrEqual(Number(start));
    }
    const later = spans.find(({ name }) => name === "later");
    const server = spans.find(({ spanId: id }) => id === later?.parentSpanId);
    expect(server?.attributes).toEqual([
      { key: "http.request.method", value: { stringValue: "GET" } },
      { key: "url.path", value: { stringValue: "/later" } },
      { key: "url.scheme", value: { stringValue: "http" } },
      { key: "server.address", value: { stringValue: "127.0.0.1" } },
      { key: "http.response.status_code", value: { intValue: "200" } },
    ]);
  });

  test("that takes nothing, what waits for it is bounded", async () => {
    const stuck = createServer(() => {}).listen(0, "127.0.0.1");
    await new Promise((resolve) => stuck.once("listening", resolve));
    onTestFinished(() => stuck.close().closeAllConnections());
    const { port } = stuck.address() as { port: number };
    const { url } = await startFunction(
      `exports.main = ({ tracer }) => {
        for (let n = 0; n < 100; n++) tracer.startSpan("x".repeat(100_000)).end();
        return process.memoryUsage();
      };`,
      { TRACE_COLLECTOR_ENDPOINT: `http://127.0.0.1:${port}` },
    );
    const memory = async () => JSON.parse((await send(url)).body) as { arrayBuffers: number };
    for (let n = 0; n < 10; n++) expect((await memory()).arrayBuffers).toBeLessThan(8 * 2 ** 20);
  });

  test("an answer's span is a child of its caller's", async () => {
    const collector = await startCollector();
    const env = { TRACE_COLLECTOR_ENDPOINT: collector.endpoint };
    const { url } = await startFunction(`exports.main = () => "ok";`, env);
    for (const tracestate of [undefined, "a=1"]) {
      const headers = {
        traceparent: `00-${traceId}-${spanId}-01`,
        ...(tracestate && { tracestate }),
      };
      await send(`${url}/${tracestate ?? ""}`, { headers });
    }
    await send(url, { headers: { traceparent: `00-${traceId}-${spanId}-00` } });
    await expect.poll(() => collector.spans.length).toBe(2);
    for (const span of collector.spans) {
      expect(span).toMatchObject({ traceId, parentSpanId: spanId, name: "GET", kind: 2 });
      expect(span.spanId).toMatch(/^(?!0{16})[0-9a-f]{16}$/);
    }
    expect(new Set(collector.spans.map((span) => span.spanId)).size).toBe(2);
  });

  test("a connection that waits for its next request keeps nothing of the last one", async () => {
    const collector = await startCollector();
    const { url } = await startFunction(
      `let last;
      exports.main = (event) => {
        const { request } = event.extensions;
        if (request.path === "/last") last = new WeakRef(request);
        else gc();
        return { isGone: last?.deref() === undefined };
      };`,
      { TRACE_COLLECTOR_ENDPOINT: collector.endpoint, NODE_OPTIONS: "--expose-gc" },
    );
    const agent = new Agent({ keepAlive: true });
    onTestFinished(() => agent.destroy());
    await new Promise<void>((resolve) => {
      get(`${url}/last`, { agent }, (answer) => void answer.resume().once("end", resolve));
    });
    await expect.poll(async () => JSON.parse((await send(url)).body)).toEqual({ isGone: true });
  });

  const api = path.resolve("node_modules/@opentelemetry/api");
  test("OpenTelemetry's own API is at work", async () => {
    const collector = await startCollector();
    const { url } = await startFunction(
      `const { trace, context } = require(${JSON.stringify(api)});
      exports.main = async () => trace.getTracer("mine").startActiveSpan("own", async (span) => {
        await new Promise((done) => setTimeout(done, 5));
        const same = trace.getSpan(context.active()) === span;
        span.end();
        return same;
      });`,
      { TRACE_COLLECTOR_ENDPOINT: collector.endpoint },
    );
    expect((await send(url)).body).toBe("true");
    await expect.poll(() => collector.spans.map(({ name }) => name)).toEqual(["own", "GET"]);
  });

  test("that is not there, requests are answered all the same, and the log says it once", async () => {
    const { url, stderr } = await startFunction(`exports.main = () => "ok";`, {
      TRACE_COLLECTOR_ENDPOINT: "http://127.0.0.1:9/v1/traces",
    });
    expect((await send(url)).body).toBe("ok");
    await expect.poll(stderr).toMatch(/^exporting spans to http:\/\/127\.0\.0\.1:9\/v1\/traces: /);
  });
});
