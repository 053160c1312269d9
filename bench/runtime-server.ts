/** The Node.js runtime as an image has it, in a process of its own, for benchmarks. */
import { type ChildProcess, spawn } from "node:child_process";
import { connect } from "node:net";
import { bundleRuntime, compileRuntime, layOut, type RuntimeFile } from "@spry/runtime-nodejs";

/** As images have it, with bytecode for this Node.js. */
export async function makeRuntime(): Promise<RuntimeFile[]> {
  return await compileRuntime(await bundleRuntime(), process.execPath);
}

export { layOut };

let nextPort = 18_000 + (process.pid % 2000);

export interface RunningServer {
  port: number;
  pid: number;
  child: ChildProcess;
  stop(): Promise<void>;
}

/** Starts a program; `prefix` is a command that runs it, such as `taskset -c 1`. */
export function startServer(
  file: string,
  env: Record<string, string>,
  options: { prefix?: string[]; flags?: string[] } = {},
): RunningServer {
  const port = nextPort++;
  const { prefix = [], flags = [] } = options;
  const [command, ...args] = [...prefix, process.execPath, ...flags, file];
  const child = spawn(command, args, {
    env: {
      SERVER_HOST: "127.0.0.1",
      FUNC_PORT: String(port),
      FUNC_NAME: "hello",
      FUNC_RUNTIME: "nodejs24",
      ...env,
    },
    stdio: "ignore",
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
  };
  return { port, pid: child.pid ?? 0, child, stop };
}

/** Asks again until something listens, without a pause that would be measured. */
export function firstAnswer(port: number, retryMs = 1): Promise<void> {
  return new Promise((resolve, reject) => {
    const attempt = () => {
      const socket = connect(port, "127.0.0.1");
      socket.once("error", () => setTimeout(attempt, retryMs));
      socket.once("data", (data) => {
        socket.destroy();
        if (data.toString().startsWith("HTTP/1.1 200")) resolve();
        else reject(new Error(data.toString()));
      });
      socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    };
    attempt();
  });
}
