import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { send, startFunction } from "../testing/running-function.ts";

const echo = `
exports.main = () => "http";
exports.websocket = (socket, request) => {
  socket.send("hello " + request.query.name);
  socket.onmessage = ({ data }) => {
    if (data === "throw") throw new Error("in a message");
    if (data === "leave") return socket.close(4000, "bye");
    socket.send(data);
  };
  socket.addEventListener("close", ({ code, reason, wasClean }) => console.log("closed", code, reason, wasClean));
};`;

/** The client is Node.js' own. */
async function open(url: string, protocols: string[] = []) {
  const socket = new WebSocket(url.replace("http", "ws"), protocols);
  socket.binaryType = "arraybuffer";
  const messages: unknown[] = [];
  socket.addEventListener("message", ({ data }) => messages.push(data));
  await once(socket, "open");
  return { socket, messages };
}

const closed = async (socket: WebSocket) => (await once(socket, "close"))[0] as CloseEvent;

describe("a Function that exports websocket", () => {
  test("exchanges texts and bytes, and its main answers the rest", async () => {
    const { url, stdout } = await startFunction(echo);
    const { socket, messages } = await open(`${url}/?name=me`, ["chat", "other"]);
    expect(socket.protocol).toBe("chat");
    const texts = ["", "ü", "x".repeat(200), "y".repeat(100_000)];
    for (const text of texts) socket.send(text);
    socket.send(new Uint8Array([1, 2, 255]));
    await expect.poll(() => messages.length).toBe(6);
    expect(messages.slice(0, 5)).toEqual(["hello me", ...texts]);
    expect(new Uint8Array(messages[5] as ArrayBuffer)).toEqual(new Uint8Array([1, 2, 255]));
    expect((await send(url)).body).toBe("http");
    socket.close(3001, "enough");
    expect(await closed(socket)).toMatchObject({ code: 3001, wasClean: true });
    await expect.poll(stdout).toBe("closed 3001 enough true\n");
  });

  test("may close, and survives what it throws", async () => {
    const { url, stderr } = await startFunction(echo);
    const { socket, messages } = await open(url);
    socket.send("throw");
    socket.send("still there");
    await expect.poll(() => messages).toContain("still there");
    await expect.poll(stderr).toContain("in a message");
    socket.send("leave");
    expect(await closed(socket)).toMatchObject({ code: 4000, reason: "bye", wasClean: true });
  });

  test("is closed with 1011 when it throws at once, and 426 without a main", async () => {
    const { url } = await startFunction(
      `exports.websocket = async () => { throw new Error("x"); };`,
    );
    const { socket } = await open(url);
    expect(await closed(socket)).toMatchObject({ code: 1011 });
    expect(await send(url)).toMatchObject({ status: 426, body: "Upgrade Required" });
  });

  test("may give a long reason, and must send text or bytes", async () => {
    const { url } = await startFunction(`exports.websocket = (socket) => {
      const mistakes = [5, null, {}].map((data) => { try { socket.send(data); } catch (error) { return error.name; } });
      socket.send(String(mistakes));
      socket.onmessage = () => socket.close(4000, "ü".repeat(100));
    };`);
    const { socket, messages } = await open(url);
    await expect.poll(() => messages).toEqual(["TypeError,TypeError,TypeError"]);
    socket.send("go");
    expect(await closed(socket)).toMatchObject({ code: 4000, reason: "ü".repeat(61) });
  });

  test("says goodbye when the runtime stops", async () => {
    const { url, process, exited } = await startFunction(echo);
    const { socket } = await open(url);
    process.kill("SIGTERM");
    expect(await closed(socket)).toMatchObject({ code: 1001, wasClean: true });
    expect(await exited).toBe(0);
  });
});

test.skipIf(Number(process.versions.node.split(".")[0]) < 24)(
  "an offer of HTTP/2 is no WebSocket: the request is answered",
  async () => {
    const { url } = await startFunction(echo);
    const headers = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "" };
    expect(await send(url, { headers })).toMatchObject({ status: 200, body: "http" });
  },
);

describe("a client that breaks the protocol", () => {
  const head = (extra: string) =>
    `GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n${extra}\r\n`;
  const good = head(
    "upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
  );
  const mask = [0, 0, 0, 0];
  const rows: { name: string; bytes: number[]; code: number }[] = [
    { name: "no mask", bytes: [0x81, 0x01, 0x61], code: 1002 },
    { name: "reserved bits", bytes: [0xc1, 0x80, ...mask], code: 1002 },
    { name: "an unknown opcode", bytes: [0x83, 0x80, ...mask], code: 1002 },
    { name: "a part of nothing", bytes: [0x80, 0x80, ...mask], code: 1002 },
    { name: "a long ping", bytes: [0x89, 0xfe, 0, 126, ...mask], code: 1002 },
    { name: "no UTF-8", bytes: [0x81, 0x81, ...mask, 0xff], code: 1007 },
    {
      name: "a message of 16 EB",
      bytes: [0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, ...mask],
      code: 1009,
    },
    { name: "no close code", bytes: [0x88, 0x82, ...mask, 0, 1], code: 1002 },
  ];

  async function exchange(url: string, bytes: Buffer): Promise<Buffer> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(bytes);
    const chunks: Buffer[] = [];
    for await (const chunk of socket as AsyncIterable<Buffer>) chunks.push(chunk);
    return Buffer.concat(chunks);
  }

  test("is told why, by the close code", async () => {
    const { url } = await startFunction(`exports.websocket = () => {};`);
    for (const { name, bytes, code } of rows) {
      const answer = await exchange(url, Buffer.concat([Buffer.from(good), Buffer.from(bytes)]));
      const frame = answer.subarray(answer.indexOf("\r\n\r\n") + 4);
      expect({ name, opcode: frame[0], code: frame.readUInt16BE(2) }).toEqual({
        name,
        opcode: 0x88,
        code,
      });
    }
  });

  test("or by the answer, when it is not let in", async () => {
    const { url } = await startFunction(`exports.websocket = () => {};`);
    const answer = await exchange(url, Buffer.from(head("upgrade: websocket\r\n")));
    expect(answer.toString()).toMatch(/^HTTP\/1\.1 400 [^]*the WebSocket version must be 13$/);
  });

  test("message in parts with a ping in between is whole", async () => {
    const { url } = await startFunction(
      `exports.websocket = (socket) => { socket.onmessage = ({ data }) => { socket.send(data); socket.close(); }; };`,
    );
    const parts = [
      0x01,
      0x81,
      ...mask,
      0x61,
      0x89,
      0x80,
      ...mask,
      0x80,
      0x81,
      ...mask,
      0x62,
      0x88,
      0x80,
      ...mask,
    ];
    const answer = await exchange(url, Buffer.concat([Buffer.from(good), Buffer.from(parts)]));
    const frames = answer.subarray(answer.indexOf("\r\n\r\n") + 4);
    expect([...frames.subarray(0, 6)]).toEqual([0x8a, 0, 0x81, 2, 0x61, 0x62]);
  });

  describe("and fills no memory", () => {
    /** Its main tells how much there is in buffers, and waits to be sent. */
    const measuring = `
    require("node:v8").setFlagsFromString("--expose-gc");
    const collect = require("node:vm").runInNewContext("gc");
    const open = [];
    exports.websocket = (socket) => { open.push(socket); };
    exports.main = () => {
      collect();
      // What the first has found is given back beside the program: the second waits for that.
      collect();
      return { held: process.memoryUsage().arrayBuffers, unsent: Math.max(...open.map((each) => each.bufferedAmount)) };
    };`;
    const flood = 64 * 1024 * 1024;

    async function hold(url: string, begin: number[], piece: Buffer, length = flood) {
      const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
      onTestFinished(() => void socket.destroy());
      // Nobody reads what comes back.
      socket.write(Buffer.concat([Buffer.from(good), Buffer.from(begin)]));
      for (let sent = 0; sent < length && !socket.destroyed; sent += piece.length)
        if (!socket.write(piece))
          await Promise.race([once(socket, "drain"), once(socket, "close")]);
      return JSON.parse((await send(url)).body) as { held: number; unsent: number };
    }

    test("with what it sends after its end", async () => {
      const { url } = await startFunction(measuring);
      const tooLarge = [0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, ...mask];
      const { held } = await hold(url, tooLarge, Buffer.alloc(256 * 1024));
      expect(held).toBeLessThan(flood / 4);
    });

    test("with pongs that it does not read", async () => {
      const { url } = await startFunction(measuring);
      const ping = Buffer.concat([Buffer.from([0x89, 0xfd, ...mask]), Buffer.alloc(125)]);
      const { held, unsent } = await hold(url, [], Buffer.concat(Array(2000).fill(ping)));
      expect(Math.max(held, unsent)).toBeLessThan(flood / 4);
    });

    test("with many small messages that it does not read", async () => {
      const { url } = await startFunction(`${measuring}
      let grown = 0;
      exports.websocket = (socket) => {
        collect();
        const before = process.memoryUsage().heapUsed;
        for (let n = 0; n < 1_000_000; n++) socket.send("some twenty letters.");
        collect();
        grown = process.memoryUsage().heapUsed - before;
      };
      exports.main = () => ({ grown });`);
      const { grown } = (await hold(url, [], Buffer.alloc(0), 0)) as unknown as { grown: number };
      expect(grown).toBeGreaterThan(0);
      expect(grown).toBeLessThan(flood);
    });

    test("with connections on which it is not let in: they are closed", async () => {
      const { url, process, exited, stderr } = await startFunction(measuring);
      const refused = connect({
        port: Number(new URL(url).port),
        host: "127.0.0.1",
        allowHalfOpen: true,
      });
      onTestFinished(() => void refused.destroy());
      refused.resume();
      refused.write(head("upgrade: websocket\r\n"));
      await once(refused, "end");
      // It is still open on the client's side.
      process.kill("SIGTERM");
      expect(await exited).toBe(0);
      expect(stderr()).toBe("");
    });
  });
});
