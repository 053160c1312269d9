import path from "node:path";
import { type ContainerSpec } from "../sandbox.ts";
import { isTaskImage } from "./runtime-copy.ts";

/**
 * What counts when a process of a runtime starts, and cannot be given to it later. Names as the runtimes have them
 * (docs/runtime-contract.md 1.5), and what interpreters and C libraries read besides.
 */
const early =
  /^(?:NODE_|UV_|SSL_|OPENSSL_|PYTHON(?!PATH$|UNBUFFERED$)|LD_|MALLOC_|GLIBC_|LC_|ICU_|LANG$|LANGUAGE$|TZ$|(?:NO|FORCE)_COLOR$)/;
/** Those that run no code and name no file. With any other a Function starts cold. */
const harmless =
  /^(?:NODE_OPTIONS|NODE_ENV|UV_THREADPOOL_SIZE|LC_\w+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR)$/;
const harmlessValue = /^[\w .@+:,=-]{0,256}$/;
/** Sizes, and what is written about errors. `--require` and `--import` would run a Function's code in a process that waits. */
const harmlessOption =
  /^--(?:max-old-space-size=\d{1,6}|max-semi-space-size=\d{1,4}|stack-trace-limit=\d{1,4}|no-warnings|trace-warnings|trace-uncaught|enable-source-maps)$/;

/**
 * The variables that a waiting process has to be started with, so that it can become one with `env`; undefined when
 * there is one that it must not have while it waits. `ownOptions` is what the sandbox puts before `NODE_OPTIONS`.
 */
export function startVariables(
  env: Readonly<Record<string, string>>,
  ownOptions: string,
): Record<string, string> | undefined {
  const variables = Object.entries(env).filter(([name]) => early.test(name));
  const isHarmless = ([name, value]: [string, string]) =>
    name === "NODE_OPTIONS"
      ? areHarmless(value, ownOptions)
      : harmless.test(name) && harmlessValue.test(value);
  return variables.every(isHarmless) ? Object.fromEntries(variables) : undefined;
}

function areHarmless(options: string, own: string): boolean {
  const given = options.startsWith(own) ? options.slice(own.length) : options;
  return given
    .split(" ")
    .filter(Boolean)
    .every((option) => harmlessOption.test(option));
}

/** The variables that a process has to wait with to become this container; undefined for one that none can become. */
export function variablesFor(
  spec: ContainerSpec,
  { cwd, env }: { cwd: string; env: Readonly<Record<string, string>> },
  ownOptions: string,
): Record<string, string> | undefined {
  const isTask = isTaskImage(spec.image);
  if (spec.keepExitCode !== isTask || spec.stdin || spec.tty || spec.run > 0) return undefined;
  const { rootDir, config } = spec.image;
  const { Entrypoint = [], Cmd = [], WorkingDir = "" } = config;
  const usual = [...Entrypoint, ...Cmd];
  // A task gets further arguments when it is taken over.
  const given = isTask ? spec.argv.slice(0, usual.length) : spec.argv;
  const isUsual = usual.length === given.length && usual.every((x, i) => x === given[i]);
  // The Function's code is where the image has it, and no volume is in its place.
  if (!isUsual || cwd !== path.join(rootDir, WorkingDir || "/")) return undefined;
  return startVariables(env, ownOptions);
}
