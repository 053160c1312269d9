/** Clause 6.1 under a real limit: what is accepted is answered, and what does not fit is refused before it ends a process. */
import { limitMemory, noMemoryLimits } from "@spry/test-kit";
import { describe, expect, test } from "vitest";
import { type Call, missingPython, PythonRuntime } from "./testing.ts";

const source = (form: string) => `
import os
${form} main(event, context):
    request = event["extensions"]["request"]
    if request.path == "/echo": return request.body.read()
    if request.path == "/data": return {"data": event["data"]}
    if request.path == "/type": return type(event.get("data")).__name__
    if request.path == "/form": return str(len(request.forms["a"]))
    return str(os.getpid())
`;

const types = {
  bytes: "application/octet-stream",
  json: "application/json",
  text: "text/plain",
  form: "application/x-www-form-urlencoded",
};
const megabytes = (count: number) => "x".repeat(count * 1e6);
const post = (kind: keyof typeof types, body: string): Call => ({
  method: "POST",
  headers: { "content-type": types[kind] },
  body,
});

/** Small on the wire, thirty times as large as objects. */
const lists = (count: number) => `[${"[],".repeat((count * 1e6) / 3)}[]]`;
const records = (count: number) =>
  JSON.stringify(
    Array.from({ length: count * 14_000 }, (_, i) => ({ id: i, name: `name ${i}`, tags: ["a"] })),
  );

const accepted: [name: string, path: string, call: Call][] = [
  ["bytes that the handler does not read", "/", post("bytes", megabytes(20))],
  ["bytes just below the announced fifth", "/", post("bytes", megabytes(24))],
  ["bytes that it answers", "/echo", post("bytes", megabytes(20))],
  ["JSON of one long text that it answers", "/data", post("json", `{"a":"${megabytes(16)}"}`)],
  ["JSON of many records that it answers", "/data", post("json", records(2))],
  ["text", "/type", post("text", megabytes(20))],
  ["a form", "/form", post("form", `a=${megabytes(8)}`)],
];
const refused: [name: string, call: Call][] = [
  ["bytes that alone need too much", post("bytes", megabytes(32))],
  ["JSON that becomes thirty times as large", post("json", lists(12))],
  ["text that one character makes four times as large", post("text", `${megabytes(24)}😀`)],
];

describe.skipIf(missingPython ?? noMemoryLimits).each(["def", "async def"])(
  "%s, of 128 MiB",
  (form) => {
    const start = (prefix: string[], env = {}) =>
      PythonRuntime.start(source(form), { FUNC_TIMEOUT: "60", ...env }, prefix);

    test("answers or refuses each body, and its processes live on", async () => {
      await using group = limitMemory(128);
      await using runtime = await start(group.prefix);
      const { body: process } = await runtime.call();
      for (const [name, path, call] of accepted)
        expect({ name, status: (await runtime.call(path, call)).status }).toEqual({
          name,
          status: 200,
        });
      for (const [name, call] of refused)
        expect({ name, ...(await runtime.call("/", call)) }).toMatchObject({
          name,
          status: 413,
          body: "the request body is too large for the memory that the Function has left\n",
        });
      expect((await runtime.call("/echo", post("bytes", megabytes(16)))).status).toBe(200);
      expect((await runtime.call()).body).toBe(process);
      expect(group.kills()).toBe(0);
    });

    test.each<[name: string, path: string, count: number, call: Call]>([
      ["five of 10 MB", "/echo", 5, post("bytes", megabytes(10))],
      ["a hundred of 1 MB", "/data", 100, post("json", lists(1))],
      ["twenty of many records", "/data", 20, post("json", records(2))],
    ])("%s at once are answered or refused", async (_, path, count, call) => {
      await using group = limitMemory(128);
      await using runtime = await start(group.prefix);
      const { body: process } = await runtime.call();
      const answers = await Promise.all(
        Array.from({ length: count }, () => runtime.call(path, call)),
      );
      const statuses = answers.map(({ status }) => status);
      expect(statuses).toContain(200);
      expect(new Set(statuses)).toEqual(new Set([200, 503]));
      for (const { headers, status } of answers)
        expect(headers["retry-after"]).toBe(status === 503 ? "1" : undefined);
      expect((await runtime.call()).body).toBe(process);
      expect(group.kills()).toBe(0);
    });

    test("a client that announces more than there is room for is refused before it sends", async () => {
      await using group = limitMemory(128);
      await using runtime = await start(group.prefix);
      const head =
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 50000000\r\n\r\n";
      expect(await runtime.raw(head)).toMatch(/^HTTP\/1.1 413 /);
    });

    test("a client that announces much and sends little holds nothing", async () => {
      await using group = limitMemory(128);
      await using runtime = await start(group.prefix);
      const sockets = Array.from({ length: 20 }, () => runtime.connect());
      for (const socket of sockets)
        socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\nx");
      expect((await runtime.call("/echo", post("bytes", megabytes(16)))).status).toBe(200);
      for (const socket of sockets) socket.destroy();
    });
  },
);

test.skipIf(missingPython ?? noMemoryLimits).each([
  [256, 48],
  [512, 90],
])("with %i MiB a body of %i MB is answered", async (mebibytes, size) => {
  await using group = limitMemory(mebibytes);
  await using runtime = await PythonRuntime.start(source("def"), {}, group.prefix);
  expect((await runtime.call("/echo", post("bytes", megabytes(size)))).status).toBe(200);
  expect(group.kills()).toBe(0);
});
