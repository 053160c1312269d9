import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { missingPython, PythonRuntime } from "./testing.ts";

const echo = `
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        raise NotImplementedError
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        return await send({"type": "http.response.body", "body": b"http"})
    assert (await receive())["type"] == "websocket.connect"
    if scope["path"] == "/no":
        return await send({"type": "websocket.close"})
    protocols = scope["subprotocols"]
    await send({"type": "websocket.accept", "subprotocol": protocols[-1] if protocols else None})
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return print("left with", message["code"])
        if message["text"] == "bye":
            return await send({"type": "websocket.close", "code": 4001, "reason": "as asked"})
        if message["text"] == "raise":
            raise ValueError("broken")
        await send({"type": "websocket.send", "text": message["text"], "bytes": message["bytes"]})
`;
const limited = { FUNC_BODY_MB_LIMIT: "1", FUNC_TIMEOUT: "1" };

async function open(runtime: PythonRuntime, target = "/", protocols: string[] = []) {
  const socket = new WebSocket(`ws://127.0.0.1:${runtime.port}${target}`, protocols);
  await once(socket, "open");
  return socket;
}

async function echoed(socket: WebSocket, message: string | Buffer): Promise<string> {
  socket.send(message);
  const [data] = (await once(socket, "message")) as [Buffer];
  return data.toString();
}

const handshake =
  "GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

/** A client's frame whose mask is zero. */
const masked = (first: number, payload: string) =>
  String.fromCharCode(first, 0x80 | payload.length, 0, 0, 0, 0) + payload;

describe.skipIf(missingPython)("WebSockets of an ASGI application", () => {
  test("carry text and bytes of any size up to the body's limit, longer than FUNC_TIMEOUT", async () => {
    await using runtime = await PythonRuntime.start(echo, limited);
    const socket = await open(runtime, "/", ["a", "b"]);
    expect(socket.protocol).toBe("b");
    for (const size of [0, 1, 125, 126, 65_535, 65_536, 1_000_000])
      expect((await echoed(socket, "x".repeat(size))).length).toBe(size);
    expect(await echoed(socket, Buffer.from("bytes"))).toBe("bytes");
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(await echoed(socket, "ü")).toBe("ü");
    socket.send("x".repeat(1024 * 1024 + 1));
    expect((await once(socket, "close"))[0]).toBe(1009);
    expect((await runtime.call()).body).toBe("http");
  });

  test("close as either side says", async () => {
    await using runtime = await PythonRuntime.start(echo);
    const first = await open(runtime);
    first.send("bye");
    const [code, reason] = (await once(first, "close")) as [number, Buffer];
    expect([code, reason.toString()]).toEqual([4001, "as asked"]);
    const second = await open(runtime);
    second.close(3000);
    await once(second, "close");
    await expect.poll(() => runtime.output).toContain("left with 3000");
    const third = await open(runtime);
    third.send("raise");
    expect((await once(third, "close"))[0]).toBe(1011);
    await expect.poll(() => runtime.output).toContain("ValueError: broken");
    const fourth = await open(runtime);
    fourth.terminate();
    await expect.poll(() => runtime.output).toContain("left with 1006");
  });

  test("may be refused, and are closed with 1001 when the runtime stops", async () => {
    await using runtime = await PythonRuntime.start(echo);
    await expect(open(runtime, "/no")).rejects.toThrow("403");
    const socket = await open(runtime);
    runtime.signal("SIGTERM");
    expect((await once(socket, "close"))[0]).toBe(1001);
    expect(await runtime.exited).toBe(0);
  });

  const hostile: [name: string, bytes: string, code: number][] = [
    ["a frame that is not masked", "\x81\x01a", 1002],
    ["reserved bits", masked(0xc1, "a"), 1002],
    ["an unknown opcode", masked(0x83, "a"), 1002],
    ["a continuation of nothing", masked(0x80, "a"), 1002],
    ["a message inside another", masked(0x01, "a") + masked(0x81, "b"), 1002],
    ["a ping in pieces", masked(0x09, "a"), 1002],
    ["text that is not UTF-8", masked(0x81, "\xff"), 1007],
    ["a close frame of one byte", masked(0x88, "a"), 1002],
    ["a length beyond all limits", `\x82\xff${"\x7f".repeat(8)}`, 1009],
  ];
  test("end, with the code that says why, for what the protocol forbids", async () => {
    await using runtime = await PythonRuntime.start(echo, limited);
    const codes = hostile.map(async ([name, bytes]) => {
      const answer = await runtime.raw(handshake + bytes);
      const received = Buffer.from(answer.split("\r\n\r\n")[1] ?? "", "latin1");
      return [name, received[0], received.readUInt16BE(2)];
    });
    expect(await Promise.all(codes)).toEqual(hostile.map(([name, , code]) => [name, 0x88, code]));
    expect((await runtime.call()).status).toBe(200);
  });

  test("need the version and the key that the protocol asks for", async () => {
    await using runtime = await PythonRuntime.start(echo);
    const close = (text: string) =>
      text.replace("connection: upgrade", "connection: upgrade, close");
    const version = close(handshake.replace("version: 13", "version: 8"));
    expect(await runtime.raw(version)).toMatch(/^HTTP\/1.1 426 [^]*sec-websocket-version: 13\r\n/);
    expect(await runtime.raw(close(handshake.replace("dGhl", "")))).toMatch(/^HTTP\/1.1 400 /);
  });
});
