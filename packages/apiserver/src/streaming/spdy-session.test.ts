import { duplexPair } from "node:stream";
import { deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { ByteReader } from "./byte-reader.ts";
import { headerDictionary } from "./spdy-dictionary.ts";
import { SpdyHeaders } from "./spdy-headers.ts";
import { SpdySession } from "./spdy-session.ts";
import { type SpdyStream } from "./spdy-stream.ts";

const synStream = 1;
const fin = 1;

function connect() {
  const [client, server] = duplexPair();
  const streams: SpdyStream[] = [];
  const session = new SpdySession(server, (stream) => streams.push(stream));
  const ended = session.run().then(
    () => "ended",
    (error: Error) => error.message,
  );
  client.on("error", () => {});
  return { client, reader: new ByteReader(client), streams, ended, headers: new SpdyHeaders() };
}

function control(type: number, body: Buffer, version = 3, length = body.length): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt16BE(0x8000 | version, 0);
  header.writeUInt16BE(type, 2);
  header.writeUIntBE(length, 5, 3);
  return Buffer.concat([header, body]);
}

function data(id: number, text: string, flags = 0): Buffer {
  const header = Buffer.alloc(8);
  header.writeUInt32BE(id, 0);
  header.writeUInt8(flags, 4);
  header.writeUIntBE(text.length, 5, 3);
  return Buffer.concat([header, Buffer.from(text)]);
}

const opening = (id: number, block: Buffer) => {
  const start = Buffer.alloc(10);
  start.writeUInt32BE(id, 0);
  return control(synStream, Buffer.concat([start, block]));
};

async function frame(reader: ByteReader) {
  const header = await reader.take(8);
  const body = header && (await reader.take(header.readUIntBE(5, 3)));
  return header && { type: header.readUInt32BE(0), flags: header.readUInt8(4), body };
}

const named = (type: string) => new Map([["streamtype", type]]);

test("a stream is answered and carries bytes both ways, to the end of each", async () => {
  const { client, reader, streams, headers } = connect();
  client.write(opening(1, await headers.encode(named("data"))));
  expect((await frame(reader))?.type).toBe(0x8003_0002);
  client.write(Buffer.concat([data(1, "hello "), data(1, "there", fin)]));
  const [stream] = streams;
  expect(stream?.headers.get("streamtype")).toBe("data");
  let text = "";
  for await (const chunk of stream?.iterator({ destroyOnReturn: false }) ?? []) text += chunk;
  expect(text).toBe("hello there");
  stream?.end("good day");
  expect(await frame(reader)).toMatchObject({ type: 1, flags: 0, body: Buffer.from("good day") });
  expect(await frame(reader)).toMatchObject({ type: 1, flags: fin });
});

test("headers of later streams are read with what the earlier ones have said", async () => {
  const { client, reader, streams, headers } = connect();
  for (const [id, name] of [
    [1, "error"],
    [3, "data"],
    [5, "error"],
  ] as const) {
    client.write(opening(id, await headers.encode(named(name))));
    await frame(reader);
  }
  expect(streams.map((stream) => stream.headers.get("streamtype"))).toEqual([
    "error",
    "data",
    "error",
  ]);
});

test("a ping comes back", async () => {
  const { client, reader } = connect();
  client.write(control(6, Buffer.from([0, 0, 0, 7])));
  expect(await frame(reader)).toMatchObject({ type: 0x8003_0006, body: Buffer.from([0, 0, 0, 7]) });
});

test("bytes for a stream that is not there are refused, and the connection goes on", async () => {
  const { client, reader, streams, headers } = connect();
  client.write(data(9, "lost"));
  expect((await frame(reader))?.type).toBe(0x8003_0003);
  client.write(opening(11, await headers.encode(named("data"))));
  await frame(reader);
  expect(streams).toHaveLength(1);
});

test("the end of a connection ends its streams", async () => {
  const { client, reader, streams, headers, ended } = connect();
  client.write(opening(1, await headers.encode(named("data"))));
  await frame(reader);
  client.end();
  expect(await ended).toBe("ended");
  expect(streams[0]?.destroyed).toBe(true);
});

const compressed = (block: Buffer) => deflateSync(block, { dictionary: headerDictionary });
const count = (value: number, rest = Buffer.alloc(0)) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return Buffer.concat([bytes, rest]);
};

test.each<[string, Buffer, RegExp]>([
  ["a control frame without end", control(synStream, Buffer.alloc(0), 3, 0xff_ffff), /too long/],
  ["another version", control(synStream, Buffer.alloc(10), 2), /version 2/],
  ["a control frame without a stream", control(3, Buffer.alloc(2)), /cut off/],
  ["headers that are not compressed", opening(1, Buffer.from("hello")), /./],
  ["headers that blow up", opening(1, compressed(Buffer.alloc(10_000_000))), /too long/],
  ["more headers than there are", opening(1, compressed(count(5))), /cut off/],
  ["very many headers", opening(1, compressed(count(0xffff_ffff))), /too many headers/],
  ["a name longer than its block", opening(1, compressed(count(1, count(0xffff)))), /cut off/],
  ["a stream of the server's", opening(2, compressed(count(0))), /out of order/],
  ["an end within a frame", control(6, Buffer.alloc(1), 3, 4), /within a frame/],
])("%s ends the connection", async (_what, bytes, message) => {
  const { client, ended, streams } = connect();
  client.end(bytes);
  expect(await ended).toMatch(message);
  expect(streams).toEqual([]);
});

test("a client cannot open streams without end", async () => {
  const { client, reader, streams, headers } = connect();
  let refused = 0;
  for (let id = 1; id < 2 * 1001; id += 2) {
    client.write(opening(id, await headers.encode(named("data"))));
    if ((await frame(reader))?.type === 0x8003_0003) refused++;
  }
  expect(streams).toHaveLength(1000);
  expect(refused).toBe(1);
  client.destroy();
});
