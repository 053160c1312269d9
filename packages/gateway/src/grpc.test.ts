/** HTTP/2 over clear text, from clients and to Pods, as gRPC uses it: streams in both directions, trailers, and heads alone. */
import { once } from "node:events";
import * as http2 from "node:http2";
import { type AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Bench, startBench } from "./testing/bench.ts";

let bench: Bench;
let answer: (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;
let pod: http2.Http2Server;
let session: http2.ClientHttp2Session;
const host = "hello.default.localhost";

beforeEach(async () => {
  bench = await startBench({ withKnative: true });
  pod = http2.createServer();
  pod.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    answer(stream, headers);
  });
  pod.listen(0, "127.0.0.1");
  await once(pod, "listening");
  const { port } = pod.address() as AddressInfo;
  await bench.knative.revision("hello-00001");
  await bench.knative.h2cPods("hello-00001", "127.0.0.1", port);
  await bench.knative.route("hello", [{ revisionName: "hello-00001", percent: 100 }]);
  await bench.heard();
  session = http2.connect(`http://127.0.0.1:${bench.port}`);
  session.on("error", () => {});
});
afterEach(async () => {
  session.destroy();
  await bench.close();
  pod.close();
});

interface Outcome {
  head: http2.IncomingHttpHeaders;
  isHeadAlone: boolean;
  body: string;
  trailers: http2.IncomingHttpHeaders;
}

async function call(headers: http2.OutgoingHttpHeaders = {}, body?: string): Promise<Outcome> {
  const stream = session.request({
    ":method": "POST",
    ":path": "/shop.Till/Pay",
    ":authority": host,
    "content-type": "application/grpc",
    te: "trailers",
    ...headers,
  });
  const outcome: Outcome = { head: {}, isHeadAlone: false, body: "", trailers: {} };
  stream.on("response", (head, flags) => {
    outcome.head = head;
    outcome.isHeadAlone = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) > 0;
  });
  stream.on("trailers", (trailers) => (outcome.trailers = trailers));
  stream.on("data", (chunk: Buffer) => (outcome.body += chunk.toString()));
  stream.end(body);
  await once(stream, "close");
  return outcome;
}

describe("a Revision whose port is h2c", () => {
  test("gets requests over HTTP/2, with what tells that trailers are understood", async () => {
    const seen: http2.IncomingHttpHeaders[] = [];
    answer = (stream, headers) => {
      seen.push(headers);
      let body = "";
      stream.on("data", (chunk: Buffer) => (body += chunk.toString()));
      stream.on("end", () => {
        stream.respond({ ":status": 200 }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
        stream.end(`got ${body}`);
      });
    };
    const { head, body, trailers } = await call({}, "money");
    expect([head[":status"], body, trailers["grpc-status"]]).toEqual([200, "got money", "0"]);
    expect(seen[0]).toMatchObject({ ":authority": host, te: "trailers" });
  });

  test("may answer with a head alone, and it stays one", async () => {
    answer = (stream) =>
      stream.respond(
        { ":status": 200, "grpc-status": "12", "grpc-message": "no such method" },
        { endStream: true },
      );
    const { head, isHeadAlone } = await call();
    expect([head["grpc-status"], head["grpc-message"]]).toEqual(["12", "no such method"]);
    expect(isHeadAlone).toBe(true);
  });

  test("streams in both directions at once", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 200 }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.on("data", (chunk: Buffer) => stream.write(`<${chunk.toString()}>`));
      stream.on("end", () => stream.end());
    };
    const stream = session.request({ ":method": "POST", ":path": "/", ":authority": host });
    const echoes: string[] = [];
    for (const word of ["one", "two", "three"]) {
      stream.write(word);
      const [chunk] = (await once(stream, "data")) as [Buffer];
      echoes.push(chunk.toString());
    }
    expect(echoes).toEqual(["<one>", "<two>", "<three>"]);
    const trailers = once(stream, "trailers");
    stream.end();
    stream.resume();
    expect((await trailers)[0]).toMatchObject({ "grpc-status": "0" });
  });

  test("answers clients of HTTP/1.1 as well", async () => {
    answer = (stream) => {
      stream.respond({ ":status": 201 });
      stream.end("old");
    };
    expect(await bench.call()).toMatchObject({ status: 201, body: "old" });
  });
});

test("a client of HTTP/2 reaches Pods of HTTP/1.1 on the same port", async () => {
  const plain = await bench.pod((request, response) => response.end(request.httpVersion));
  await bench.knative.revision("plain-00001");
  await bench.revisionPods("plain-00001", [plain]);
  await bench.knative.route("plain", [{ revisionName: "plain-00001", percent: 100 }]);
  await bench.heard();
  const { body } = await call({ ":authority": "plain.default.localhost" }, "x");
  expect(body).toBe("1.1");
});

test.each([
  ["PROPFIND /", 404],
  ["PRI /", 400],
  ["PRI * HTTP/2.0?", 400],
])("a request of HTTP/1.1 that begins with %s is one, byte by byte", async (begin, status) => {
  const head = `${begin} HTTP/1.1\r\nhost: none.default.localhost\r\nconnection: close\r\n\r\n`;
  const socket = await bench.raw();
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = once(socket, "end");
  for (const byte of head) {
    if (socket.writable) socket.write(byte);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await ended;
  expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
});
