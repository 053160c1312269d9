import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import { type AddressInfo } from "node:net";
import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sendWebFile } from "./web-files.ts";

const page = "<!doctype html>";
const files = new Map([["index.html", { type: "text/html", gzip: gzipSync(page) }]]);
const server = createServer((request, response) => sendWebFile(request, response, files, {}));
beforeAll(async () => void (await once(server.listen(0, "127.0.0.1"), "listening")));
afterAll(() => server.close());

test.each([
  ["nothing", undefined, false],
  ["gzip", "gzip", true],
  ["what browsers do", "gzip, deflate, br, zstd", true],
  ["anything", "*", true],
  ["gzip, by its older name", "x-gzip", true],
  ["another coding", "br", false],
  ["no compression", "identity", false],
  ["anything but gzip", "gzip;q=0, *", false],
  ["nothing else than gzip", "GZIP; Q=0.5, identity;q=0", true],
])(
  "a client that accepts %s gets the page as it can read it",
  async (_, accepted, isCompressed) => {
    const headers = accepted === undefined ? {} : { "accept-encoding": accepted };
    const { port } = server.address() as AddressInfo;
    const [answer] = (await once(get({ port, headers, agent: false }), "response")) as [
      IncomingMessage,
    ];
    const chunks: Buffer[] = [];
    for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    expect(answer.headers).toMatchObject({
      vary: "accept-encoding",
      "content-length": String(body.length),
    });
    expect(answer.headers["content-encoding"]).toBe(isCompressed ? "gzip" : undefined);
    expect((isCompressed ? gunzipSync(body) : body).toString()).toBe(page);
  },
);
