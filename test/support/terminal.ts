/** The command in a terminal of 80 columns, as a person has it: `script` (util-linux) makes the terminal. */
import { spawn, spawnSync } from "node:child_process";
import path from "node:path";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { patience } from "../kit/index.ts";
import { cleanEnvironment, pause, root } from "./platform.ts";

const spry = path.join(root, "packages/cli/bin/spry.mjs");
const columns = 80;

/** What a line that counts seconds was, once something else is written in its place. */
// oxlint-disable-next-line no-control-regex -- that is how it is cleared
const cleared = /[^\n]*\r\u001b\[2K/g;

export const hasTerminals = spawnSync("script", ["--version"]).status === 0;

export interface InTerminal {
  /** All that the terminal has shown and not cleared again, without colours. */
  output(): string;
  /** Resolves once it has shown this; throws when the command has ended without it. */
  shows(what: RegExp): Promise<void>;
  /** As typed on the keyboard: `\x03` is Ctrl-C. */
  type(keys: string): void;
  /** The exit code, once the command has ended. */
  ended: Promise<number>;
}

/** Runs `spry` with these arguments. Afterwards the terminal's settings must be what they were; another exit code shows that. */
export function inTerminal(
  args: readonly string[],
  { cwd, env = {} }: { cwd: string; env?: NodeJS.ProcessEnv },
): InTerminal {
  const command = [process.execPath, spry, ...args].map(quoted).join(" ");
  const script = [
    // A shell that waits for a command which Ctrl-C ends.
    "trap : INT",
    `stty rows 24 cols ${columns}; before=$(stty -g)`,
    command,
    "code=$?",
    `[ "$before" = "$(stty -g)" ] || code=${terminalChanged}`,
    "exit $code",
  ].join("\n");
  const { CI: _ci, NO_COLOR: _colour, FORCE_COLOR: _force, ...clean } = cleanEnvironment();
  const child = spawn("script", ["--quiet", "--return", "--command", script, "/dev/null"], {
    cwd,
    env: { ...clean, TERM: "xterm-256color", SHELL: "/bin/sh", ...env },
    stdio: ["pipe", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  let hasEnded = false;
  child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code) => resolve(code ?? 1));
  }).finally(() => (hasEnded = true));
  const shown = () =>
    stripVTControlCharacters(output.replaceAll(cleared, "")).replaceAll("\r\n", "\n");
  return {
    output: shown,
    ended,
    type: (keys) => void child.stdin.write(keys),
    async shows(what) {
      const deadline = performance.now() + patience.platform;
      while (!what.test(shown())) {
        if (hasEnded || performance.now() > deadline)
          throw new Error(`${what} is not in\n${shown()}`);
        await pause(20);
      }
    },
  };
}

/** Exit code of a command that leaves the terminal in another mode. */
export const terminalChanged = 99;

/** Lines that a terminal would break. What was written over does not count, nor do lines of builds and of code, which begin with a space. */
export function tooLong(output: string): string[] {
  return output
    .split("\n")
    .map((line) => line.trimEnd().split("\r").at(-1) ?? "")
    .filter((line) => line.length > columns && !/^ {4}/.test(line));
}

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;
