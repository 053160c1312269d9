import { connect, isIP, type Socket } from "node:net";

interface Message {
  contentType: string;
  body: Uint8Array;
  /** For which nothing may move on the connection. */
  timeoutMs: number;
}

const limits = { answerBytes: 64 * 1024, afterStatusMs: 1000 };
/** The status after any that only announce another (RFC 9110 section 15.2). */
const status = /^(?:HTTP\/1\.1 1\d\d [^]*?\r\n\r\n)*HTTP\/1\.[01] ([2-5]\d\d)/;

/**
 * Sends one request over a connection of its own; resolves when a status of success has come and the connection is
 * closed, so that nothing holds the body any more, and rejects otherwise.
 *
 * `node:http` has a client, but it shares its code with the server: once both have run, V8 can no longer shape that code
 * for the server alone, and each of its answers costs a tenth more. A process that never runs it is smaller, too.
 */
export async function post(url: URL, { contentType, body, timeoutMs }: Message): Promise<void> {
  const socket = await open(url);
  socket.setTimeout(timeoutMs, () => socket.destroy(new Error("it did not answer in time")));
  socket.setNoDelay(true);
  socket.write(headOf(url, contentType, body.byteLength));
  socket.write(body);
  await new Promise<void>((resolve, reject) => {
    let answer = "";
    let code: number | undefined;
    let failure: Error | undefined;
    socket.on("data", (chunk: Buffer) => {
      if (code !== undefined || answer.length > limits.answerBytes) return;
      answer += chunk.toString("latin1");
      const [, found] = status.exec(answer) ?? [];
      if (found === undefined) return;
      code = Number(found);
      // A server that keeps the connection all the same has said what matters.
      socket.setTimeout(limits.afterStatusMs, () => socket.destroy());
    });
    socket.once("error", (error) => (failure = error));
    socket.once("close", () => {
      if (code !== undefined && code < 300) resolve();
      else if (code !== undefined) reject(new Error(`it answered ${code}`));
      else reject(failure ?? new Error("it closed the connection without an answer"));
    });
  });
}

async function open({ protocol, hostname, port }: URL): Promise<Socket> {
  const host = hostname.replace(/^\[|\]$/g, "");
  if (protocol !== "https:") return connect({ host, port: Number(port || 80) });
  const tls = await import("node:tls");
  // TLS has no names that are addresses (RFC 6066 section 3).
  const name = isIP(host) === 0 ? { servername: host } : {};
  return tls.connect({ host, port: Number(port || 443), ...name });
}

function headOf(url: URL, contentType: string, length: number): string {
  const { host, pathname, search, username, password } = url;
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const lines = [
    `POST ${pathname}${search} HTTP/1.1`,
    `host: ${host}`,
    `content-type: ${contentType}`,
    `content-length: ${length}`,
    "connection: close",
    ...(username ? [`authorization: Basic ${Buffer.from(credentials).toString("base64")}`] : []),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}
