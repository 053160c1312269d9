import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { relayDebugpy } from "./debugpy-relay.ts";
import { listening } from "./relay.ts";

const framed = (message: object): string => {
  const text = JSON.stringify(message);
  return `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`;
};
const attach = (remoteRoot: string) => ({
  seq: 2,
  command: "attach",
  arguments: { pathMappings: [{ localRoot: "/home/ä/shop", remoteRoot }] },
});

/** What a debugger has sent through the relay, as debugpy gets it. */
async function received(chunks: readonly (string | Buffer)[], length: number): Promise<string> {
  let text = "";
  const sockets: Socket[] = [];
  const debugpy = createServer((socket) => {
    sockets.push(socket);
    socket.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  });
  const directory = "/data/pods/7/usr/src/app/function";
  const relay = await relayDebugpy(0, { debugpyPort: await listening(debugpy, 0), directory });
  const editor = connect(relay.port, "127.0.0.1");
  onTestFinished(() => {
    editor.destroy();
    relay.close();
    debugpy.close();
  });
  await once(editor, "connect");
  for (const chunk of chunks) {
    editor.write(chunk);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  while (text.length < length) await new Promise((resolve) => setTimeout(resolve, 5));
  return Buffer.from(text, "latin1").toString();
}

test("debugpy reads where the Function's files really are, however the bytes arrive", async () => {
  const first = framed({ seq: 1, command: "initialize", arguments: {} });
  const last = framed({ seq: 3, command: "setBreakpoints", path: "/usr/src/app/function/a.py" });
  const sent = Buffer.from(first + framed(attach("/usr/src/app/function")) + last);
  const expected = first + framed(attach("/data/pods/7/usr/src/app/function")) + last;
  const middle = first.length + 30;
  const chunks = [sent.subarray(0, 9), sent.subarray(9, middle), sent.subarray(middle)];
  expect(await received(chunks, Buffer.byteLength(expected))).toBe(expected);
});

test("a directory that the user has named stays, and so does what is not of the protocol", async () => {
  const own = framed(attach("/srv/app"));
  expect(await received([own], Buffer.byteLength(own))).toBe(own);
  const other = `Content-Length: 3\r\n\r\n{{{${"x".repeat(1100 * 1024)}`;
  expect(await received([other], other.length)).toBe(other);
});
