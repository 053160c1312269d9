import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";

export const canPin = spawnSync("taskset", ["-c", "1", "true"]).status === 0;

/** Takes what it is sent, as a collector does. */
const program = `const server = require("node:http").createServer((request, response) => {
  request.resume().once("end", () => response.end("{}"));
}).listen(0, "127.0.0.1", () => console.log(server.address().port));`;

/** In a process of its own, on the core of the load if the machine can do that: its work is not the server's. */
export async function startCollector(): Promise<{ endpoint: string; close(): void }> {
  const [command, ...args] = [...(canPin ? ["taskset", "-c", "0"] : []), process.execPath];
  const child = spawn(command, [...args, "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  const endpoint = `http://127.0.0.1:${Number(port)}/v1/traces`;
  return { endpoint, close: () => void child.kill() };
}
