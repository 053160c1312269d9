import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { send, startFunction } from "./testing/running-function.ts";

/** Ways to read a request to its end; each is an async function's body that returns what it has read. */
const readers = {
  "for await": `let text = ""; for await (const chunk of request) text += chunk; return text;`,
  iterator: `let text = ""; for await (const chunk of request.iterator({ destroyOnReturn: false })) text += chunk; return text;`,
  "events data and end": `let text = ""; request.on("data", (chunk) => (text += chunk)); await events.once(request, "end"); return text;`,
  "listeners added otherwise": `let text = ""; request.addListener("data", (chunk) => (text += chunk));
    await new Promise((resolve) => request.prependOnceListener("end", resolve)); return text;`,
  "readable and read": `let text = ""; request.on("readable", () => { for (let chunk; (chunk = request.read()) !== null; ) text += chunk; });
    await events.once(request, "end"); return text;`,
  resume: `request.resume(); await stream.finished(request); return "";`,
  pipe: `return await consumers.text(request.pipe(new PassThrough()));`,
  pipeline: `const through = new PassThrough(); const text = consumers.text(through); await stream.pipeline(request, through); return await text;`,
  "a stream of the web": `return await new globalThis.Response(Readable.toWeb(request)).text();`,
  toArray: `return (await request.toArray()).join("");`,
};

const handler = `
const events = require("node:events"), stream = require("node:stream/promises"), consumers = require("node:stream/consumers");
const { PassThrough, Readable } = require("node:stream");
const readers = { ${Object.entries(readers)
  .map(([name, code]) => `${JSON.stringify(name)}: async (request) => { ${code} }`)
  .join(",\n")} };
exports.main = async ({ extensions: { request } }) => {
  const state = { readable: request.readable, readableEnded: request.readableEnded, destroyed: request.destroyed };
  if (request.query.late) await new Promise(setImmediate);
  const text = await readers[request.query.reader](request);
  return { ...state, text };
};`;

const bodies = { none: { method: "GET" }, "of length 0": { method: "POST", body: "" } };

describe("a request without a body is a stream that ends", () => {
  test.for(Object.entries(bodies))("%s", async ([, sent]) => {
    const { url } = await startFunction(handler);
    for (const reader of Object.keys(readers)) {
      for (const late of ["", "1"]) {
        const answer = await send(
          `${url}/?late=${late}&reader=${encodeURIComponent(reader)}`,
          sent,
        );
        const state = { readable: true, readableEnded: false, destroyed: false, text: "" };
        expect({ reader, late, answer: answer.body }).toEqual({
          reader,
          late,
          answer: JSON.stringify(state),
        });
      }
    }
  });

  test("also for who listens when the answer is out", async () => {
    const { url, stdout } =
      await startFunction(`exports.main = ({ extensions: { request, response } }) => {
      response.on("close", () => request.on("end", () => console.log("ended")).on("close", () => console.log("closed")).resume());
      return "ok";
    };`);
    await send(url);
    await expect.poll(stdout).toBe("ended\nclosed\n");
  });

  test("and that is closed when its client goes away", async () => {
    const { url, stdout } = await startFunction(`exports.main = ({ extensions: { request } }) => {
      request.on("close", () => console.log("closed", request.aborted));
      console.log("begun");
      return new Promise(() => {});
    };`);
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    await expect.poll(stdout).toBe("begun\n");
    socket.destroy();
    await expect.poll(stdout).toBe("begun\nclosed true\n");
  });
});
