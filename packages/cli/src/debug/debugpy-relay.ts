/** Between debugpy and a debugger that attaches: debugpy translates paths itself, by the directories that the debugger names. */
import { connect, createServer, type Socket } from "node:net";
import { functionDirectory } from "./directory-in-pod.ts";
import { listening, type Relay } from "./relay.ts";

/** The request to attach is among the first messages, and they are small. */
const maxHeadBytes = 1024 * 1024;

interface Attach {
  command?: string;
  arguments?: { pathMappings?: { localRoot?: string; remoteRoot?: string }[] };
}

/**
 * Relays `localPort` of 127.0.0.1 to debugpy at `debugpyPort`. Where a debugger says that the Function is in `functionDirectory`,
 * debugpy reads `directory`. Fails with EADDRINUSE where the port is taken.
 */
export async function relayDebugpy(
  localPort: number,
  { debugpyPort, directory }: { debugpyPort: number; directory: string },
): Promise<Relay> {
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(debugpyPort, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
    far.pipe(near);
    sendWithDirectory(near, far, directory);
  });
  const port = await listening(server, localPort);
  return {
    port,
    close() {
      server.close();
      for (const each of open) each.destroy();
    },
  };
}

/** Looks into each message until the debugger has attached; what follows goes through as it is. */
function sendWithDirectory(near: Socket, far: Socket, directory: string): void {
  let received = Buffer.alloc(0);
  const take = (data: Buffer) => {
    received = Buffer.concat([received, data]);
    for (;;) {
      const head = /^[^]*?\bContent-Length: *(\d+)[^]*?\r\n\r\n/i.exec(received.toString("latin1"));
      const end = head ? head[0].length + Number(head[1]) : Infinity;
      if (received.length < end && received.length < maxHeadBytes) return;
      if (!head || received.length < end) return passOn();
      const body = received.subarray(head[0].length, end).toString();
      received = received.subarray(end);
      const message = withDirectory(body, directory);
      const text = message ?? body;
      far.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
      if (message !== undefined) return passOn();
    }
  };
  const passOn = () => {
    near.off("data", take);
    far.write(received);
    near.pipe(far);
  };
  near.on("data", take);
}

/** The request to attach with the directory that debugpy sees; undefined for another message. */
function withDirectory(text: string, directory: string): string | undefined {
  let message: Attach;
  try {
    message = JSON.parse(text) as Attach;
  } catch {
    return undefined;
  }
  if (message.command !== "attach") return undefined;
  for (const each of message.arguments?.pathMappings ?? [])
    if (each.remoteRoot === functionDirectory) each.remoteRoot = directory;
  return JSON.stringify(message);
}
