import { once } from "node:events";
import { createConnection, type Socket } from "node:net";
import { PassThrough, Readable, type Writable } from "node:stream";
import {
  channels,
  type Clock,
  encodeFrame,
  readFrames,
  type Status,
  StatusError,
} from "@spry/kube";
import { type ExecProcess } from "../sandbox/exec-process.ts";
import { attachTo } from "./attachment.ts";
import { type ContainerRun } from "./container-run.ts";
import { type PodWorker } from "./pod-worker.ts";

const connectTimeoutMs = 10_000;
const maxCommandLength = 1_000;
/** Output on its way to a client; a command that writes faster waits. */
const bufferBytes = 256 * 1024;

/** What `PodExecOptions` and `PodAttachOptions` say in the query. */
interface StreamOptions {
  stdin: boolean;
  tty: boolean;
  command: string[];
}

/**
 * `/exec/{ns}/{pod}/{container}`: runs a command; the bodies of request and answer are channel frames.
 * The answer begins when the command has been started, and ends with a frame of its status.
 */
export function execInPod(worker: PodWorker, container: string, request: Request): Response {
  const options = streamOptionsOf(new URL(request.url).searchParams);
  const { process } = runningContainer(worker, container);
  if (options.command.length === 0) throw badRequest("you must specify at least 1 command");
  if (!process.execStreams)
    throw badRequest("this node's sandbox cannot run commands in containers");
  const { command: argv, stdin, tty } = options;
  return session(process.execStreams({ argv, stdin, tty }), request);
}

/** `/attach/{ns}/{pod}/{container}`: the container's own output from now on, and its input. */
export function attachToPod(
  worker: PodWorker,
  container: string,
  request: Request,
  clock: Clock,
): Response {
  const options = streamOptionsOf(new URL(request.url).searchParams);
  const { run, process } = runningContainer(worker, container);
  return session(attachTo(run, process, { stdin: options.stdin, clock }), request);
}

/** `/portForward/{ns}/{pod}?port=`: one TCP connection; the bodies are its two directions. */
export async function forwardPort(worker: PodWorker, request: Request): Promise<Response> {
  const text = new URL(request.url).searchParams.get("port") ?? "";
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535)
    throw badRequest(`${JSON.stringify(text.slice(0, 20))} is not a valid port`);
  const host = worker.sandbox?.ip;
  if (!host || worker.isEnded) throw notRunning(worker);
  const socket = await connected(host, port, request.signal);
  const fromClient = Readable.fromWeb((request.body ?? new ReadableStream()) as never);
  // Half-closed either way: a client may be done with sending, and still wait for the answer.
  fromClient.on("error", () => socket.destroy());
  fromClient.pipe(socket);
  socket.on("error", () => fromClient.destroy());
  socket.once("close", () => fromClient.destroy());
  request.signal.addEventListener("abort", () => socket.destroy(), { once: true });
  return new Response(bodyOf(socket));
}

function connected(host: string, port: number, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host, port, allowHalfOpen: true, noDelay: true });
    const fail = (message: string) => {
      socket.destroy();
      reject(new StatusError({ code: 503, message }));
    };
    socket.setTimeout(connectTimeoutMs, () =>
      fail(`connecting to port ${port} of the Pod timed out`),
    );
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    socket.once("error", ({ message }) =>
      fail(`failed to connect to localhost:${port} inside the Pod: ${message}`),
    );
    socket.once("connect", () => {
      socket.setTimeout(0);
      resolve(socket);
    });
  });
}

function streamOptionsOf(query: URLSearchParams): StreamOptions {
  const flag = (name: string) => ["true", "1"].includes(query.get(name) ?? "");
  const command = query.getAll("command");
  if (command.length > maxCommandLength) throw badRequest("the command has too many arguments");
  if (command.some((argument) => argument.includes("\0")))
    throw badRequest("the command holds a NUL character");
  return { stdin: flag("stdin") || flag("input"), tty: flag("tty"), command };
}

function runningContainer(worker: PodWorker, name: string) {
  const run = worker.container(name);
  if (!run) throw badRequest(`container ${name} is not valid for pod ${worker.pod.metadata.name}`);
  if (run.process)
    return { run, process: run.process } satisfies { run: ContainerRun; process: {} };
  throw new StatusError({ code: 500, message: `container not found ("${name}")` });
}

/** Carries frames both ways until the command has ended, or the client has disconnected. */
function session(exec: ExecProcess, request: Request): Response {
  const output = new PassThrough({ highWaterMark: bufferBytes });
  const gone = new AbortController();
  const leave = () => {
    gone.abort();
    exec.kill();
  };
  request.signal.addEventListener("abort", () => output.destroy(), { once: true });
  output.once("close", leave);
  output.on("error", () => {});
  if (request.signal.aborted) output.destroy();
  void takeInput(exec, request).catch(() => output.destroy());
  void giveOutput(exec, output, gone.signal).catch(() => output.destroy());
  return new Response(Readable.toWeb(output) as ReadableStream);
}

async function takeInput(exec: ExecProcess, request: Request): Promise<void> {
  const { stdin } = exec;
  if (!request.body) return void stdin?.end();
  for await (const { channel, data } of readFrames(request.body)) {
    if (channel === channels.stdin && stdin?.writable) {
      if (!stdin.write(data)) await writable(stdin);
    } else if (channel === channels.close && data[0] === channels.stdin) stdin?.end();
    else if (channel === channels.resize) {
      const size = sizeOf(data);
      if (size) exec.resize(size);
    }
  }
  stdin?.end();
}

async function giveOutput(exec: ExecProcess, output: Writable, signal: AbortSignal): Promise<void> {
  const pass = async (channel: number, stream: Readable | undefined) => {
    for await (const chunk of stream ?? [])
      if (!output.write(encodeFrame(channel, chunk as Buffer)))
        await once(output, "drain", { signal });
  };
  const ended = exec.exited.then(exitStatus, startFailure);
  await Promise.all([pass(channels.stdout, exec.stdout), pass(channels.stderr, exec.stderr)]);
  output.write(encodeFrame(channels.error, Buffer.from(JSON.stringify(await ended))));
  output.end();
}

function exitStatus({ exitCode }: { exitCode: number }): Partial<Status> {
  if (exitCode === 0) return { metadata: {}, status: "Success" };
  return {
    metadata: {},
    status: "Failure",
    message: `command terminated with non-zero exit code: exit status ${exitCode}`,
    reason: "NonZeroExitCode",
    details: { causes: [{ reason: "ExitCode", message: String(exitCode) }] },
  };
}

function startFailure(error: unknown): Status {
  const message = `Internal error occurred: error executing command in container: ${(error as Error).message}`;
  return new StatusError({ code: 500, message, reason: "InternalError" }).status;
}

function sizeOf(data: Buffer): { columns: number; rows: number } | undefined {
  if (data.length > 256) return undefined;
  try {
    const { Width, Height } = JSON.parse(data.toString()) as { Width?: number; Height?: number };
    const isSize = (value: unknown): value is number =>
      Number.isInteger(value) && (value as number) > 0 && (value as number) <= 0xffff;
    return isSize(Width) && isSize(Height) ? { columns: Width, rows: Height } : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves when more can be written, also if the reader has gone away. */
function writable(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.closed) return resolve();
    const done = () => {
      stream.off("drain", done);
      stream.off("close", done);
      resolve();
    };
    stream.once("drain", done);
    stream.once("close", done);
  });
}

/** One direction alone: it may end while the other continues. */
function bodyOf(socket: Socket): ReadableStream {
  const body = new PassThrough();
  body.on("error", () => {});
  body.once("close", () => {
    if (!body.readableEnded) socket.destroy();
  });
  socket.pipe(body);
  socket.once("close", () => body.end());
  return Readable.toWeb(body) as ReadableStream;
}

function notRunning({ pod }: PodWorker): StatusError {
  const message = `unable to forward port because pod is not running. Current status=${pod.status?.phase ?? "Pending"}`;
  return badRequest(message);
}

function badRequest(message: string): StatusError {
  return new StatusError({ code: 400, message });
}
