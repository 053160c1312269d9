import { execFile, spawnSync } from "node:child_process";
import { connect } from "node:net";
import { promisify } from "node:util";

const hasWrk = spawnSync("wrk", ["--version"]).error === undefined;

/** Requests per second over so many kept connections; by `wrk` on core 0 if it is installed. `host` is their `Host`. */
export async function generateLoad(
  port: number,
  connections: number,
  seconds: number,
  host = `127.0.0.1:${port}`,
): Promise<number> {
  if (!hasWrk) return await loadFromHere(port, connections, seconds, host);
  const whole = Math.max(1, Math.round(seconds));
  const wrk = ["wrk", "-t1", `-c${connections}`, `-d${whole}s`, "-H", `Host: ${host}`];
  const args = ["-c", "0", ...wrk];
  const { stdout } = await promisify(execFile)("taskset", [...args, `http://127.0.0.1:${port}/`]);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`the load met errors: ${stdout}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(stdout)?.[1]);
}

/** Each connection sends its next request when it has the answer, which must fit one packet. */
async function loadFromHere(
  port: number,
  connections: number,
  seconds: number,
  host: string,
): Promise<number> {
  const request = `GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`;
  let answers = 0;
  const sockets = Array.from({ length: connections }, () => {
    const socket = connect({ port, host: "127.0.0.1", noDelay: true });
    socket.on("data", () => {
      answers++;
      socket.write(request);
    });
    socket.write(request);
    return socket;
  });
  await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  for (const socket of sockets) socket.destroy();
  return answers / seconds;
}
