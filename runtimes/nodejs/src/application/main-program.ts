/**
 * Programs that listen only if they are the main one (`require.main === module`, `import.meta.main`): they are started again as
 * that, by `node` itself, in a process in which the runtime is preloaded. The first process stays for what waits for it.
 */
import { spawn } from "node:child_process";
import { readFileSync, realpathSync, statSync } from "node:fs";
import { type ModuleFile } from "../find-module.ts";
import { preloadPath } from "../apply-start.ts";
import { LoadError } from "../load-error.ts";
import { type Settings } from "../settings.ts";
import { takeSignals } from "../shutdown.ts";

/** The program in this file has neither a handler nor a server, and asks whether it is the main one. */
export class MainProgramError extends LoadError {
  readonly file: string;
  /** What comes before the program, as arguments of `node`. */
  readonly preloads: string[];

  constructor({ path, start }: ModuleFile, directory: string, message: string) {
    super(message);
    this.file = path;
    this.preloads = (start?.preloads ?? []).flatMap(({ option, name }) => [
      option,
      preloadPath(directory, name),
    ]);
  }
}

/** Ways to ask, in the languages of Node.js. */
const question =
  /\brequire\s*\.\s*main\b|\bmodule\s*\.\s*parent\b|\bprocess\s*\.\s*mainModule\b|\bimport\.meta\.main\b|\bprocess\.argv\s*\[\s*1\s*\]|\b(?:es|is)-main\b/;

function asks(text: string): boolean {
  const compares = /\bimport\.meta\.(?:url|filename)\b/.test(text) && /\bargv\b/.test(text);
  return compares || question.test(text);
}

/** The runtime's own, of an image. */
const startFile = `${__dirname}/server.cjs`;

/** Of the program's files, those that are looked at. */
const maxFiles = 200;
const maxBytes = 1_000_000;

/** Whether the code of the directory, packages aside, asks if it is the main program. What was preloaded from elsewhere may do so, too. */
export function asksWhetherMain(file: string, directory: string): boolean {
  const own = [directory, realpathSync(directory)].map((each) => `${each}/`);
  const others = Object.keys(require.cache).filter(
    (each) => own.some((place) => each.startsWith(place)) && !/[\\/]node_modules[\\/]/.test(each),
  );
  return [file, ...others.slice(0, maxFiles)].some((each) => {
    try {
      return statSync(each).size <= maxBytes && asks(readFileSync(each, "utf8"));
    } catch {
      return false;
    }
  });
}

/** In the child: the Function's directory, if this process runs a main program. Its own children run none. */
export function takeMainProgram(): string | undefined {
  const { SPRY_MAIN_PROGRAM: directory, SPRY_PARENT_FD: parent } = process.env;
  if (directory === undefined) return undefined;
  delete process.env["SPRY_MAIN_PROGRAM"];
  delete process.env["SPRY_PARENT_FD"];
  const at = process.execArgv.indexOf(startFile) - 1;
  if (at >= 0) process.execArgv.splice(at, 2);
  if (parent !== undefined) endWithParent(Number(parent));
  return directory;
}

/** A parent that was killed can pass on no signal. */
function endWithParent(descriptor: number): void {
  const { Socket } = process.getBuiltinModule("node:net");
  const socket = new Socket({ fd: descriptor, readable: true, writable: false });
  socket.on("close", () => process.exit(1)).on("error", () => {});
  socket.resume().unref();
}

export type MainProgram = Pick<MainProgramError, "file" | "preloads">;

/** What `node` is started with for the program. */
export function mainProgramArguments({ file, preloads }: MainProgram): {
  execArgv: string[];
  args: string[];
} {
  const execArgv = [...process.execArgv, "--require", startFile, ...preloads];
  // As `import.meta.url` names it: programs compare the two.
  return { execArgv, args: [realpathSync(file), ...process.argv.slice(2)] };
}

/** Starts it, and ends with it. */
export function startMainProgram(
  program: MainProgram,
  directory: string,
  { readyDescriptor }: Settings,
): void {
  const { execArgv, args } = mainProgramArguments(program);
  const child = spawn(process.execPath, [...execArgv, ...args], {
    stdio: ["inherit", "inherit", "inherit", readyDescriptor ?? "ignore", "pipe"],
    env: {
      ...process.env,
      SPRY_MAIN_PROGRAM: directory,
      SPRY_PARENT_FD: "4",
      ...(readyDescriptor !== undefined && { SPRY_READY_FD: "3" }),
    },
  });
  child.once("error", (error) => {
    process.stderr.write(`starting ${program.file} as the main program: ${error.message}\n`);
    process.exit(1);
  });
  takeSignals((signal) => void child.kill(signal));
  const numbers: Partial<Record<NodeJS.Signals, number>> = { SIGTERM: 15, SIGINT: 2, SIGKILL: 9 };
  child.once("exit", (code, signal) =>
    process.exit(code ?? 128 + ((signal && numbers[signal]) ?? 0)),
  );
}
