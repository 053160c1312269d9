import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync, rmSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { messageOf, startProgram } from "@spry/kube";
import { endOnInterrupt, type EndSignal, untilInterrupted } from "../interruption.ts";
import { runQuietly } from "../dev/quiet-runner.ts";
import { type Interpreter } from "../dev/dev-runner.ts";
import { typeScriptHook } from "../dev/typescript-hook.ts";
import { type Project } from "../project/project.ts";
import { projectOf, targetsOf } from "../project/targets.ts";
import { npmCli } from "../platform/npm-cli.ts";
import { UserError } from "../user-error.ts";

/** The Functions of one directory, and what runs its tests. */
interface Suite {
  functions: [Project, ...Project[]];
  command: [string, ...string[]];
}

/**
 * Runs a directory's tests against it; the exit code is theirs. Several Functions all run meanwhile, and the tests of their directories
 * one after the other. `args` are passed on to the runner of the tests.
 */
export async function test(directory: string, args: readonly string[]): Promise<void> {
  const targets = targetsOf([directory]);
  const within = process.env[runningTests];
  const started = targets.map(projectOf).find(({ root }) => root === within);
  // A script that is `spry test` itself means the tests of its language; the Function is running already.
  if (started) process.exit(await runDirectly(started, args));
  const suites = suitesOf(targets.map(projectOf));
  const restore = endOnInterrupt(() => console.error("interrupted: the tests were not run"));
  const run = await runQuietly(targets, (line) => console.error(line));
  restore();
  // Ctrl-C also reaches the tests: this command ends when they do.
  const interrupted = untilInterrupted();
  let signalled: EndSignal | undefined;
  void interrupted.then((signal) => (signalled = signal));
  let code = 0;
  const hook = typeScriptHook();
  try {
    for (const { functions, command } of suites) {
      const [{ root, name, runtime }] = functions;
      if (signalled) break;
      if (targets.length > 1) console.error(`${functions.map((each) => each.name).join(", ")}:`);
      const { command: chosen, variables: more } = await withPackages(
        command,
        runtime.language === "python" ? run.interpreters[name] : undefined,
      );
      const [program, ...own] = chosen;
      const variables = {
        ...more,
        ...variablesOf(run.urls),
        SPRY_URL: run.urls[name],
        [runningTests]: root,
      };
      const options = runtime.language === "nodejs" && { NODE_OPTIONS: hook.nodeOptions };
      const result = await finish(program, [...own, ...args], {
        cwd: root,
        env: { ...process.env, PATH: withOwnNode(process.env["PATH"]), ...options, ...variables },
        interrupted,
      });
      code ||= result;
    }
  } finally {
    rmSync(hook.directory, { recursive: true, force: true });
    await run.stop();
  }
  process.exit(code);
}

/** The directory whose tests run: in the environment of those. */
const runningTests = "SPRY_TEST_DIRECTORY";

async function runDirectly(project: Project, args: readonly string[]): Promise<number> {
  const [program, ...own] = commandOf(project, [], false);
  const interrupted = untilInterrupted();
  return finish(program, [...own, ...args], { cwd: project.root, env: process.env, interrupted });
}

/** `SPRY_URL_ORDERS`, and so on. */
const variablesOf = (urls: Record<string, string>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(urls).map(([name, url]) => [
      `SPRY_URL_${name.toUpperCase().replaceAll("-", "_")}`,
      url,
    ]),
  );

/** Of several directories those that have tests; at least one. */
function suitesOf(projects: readonly Project[]): Suite[] {
  const roots = [...new Set(projects.map(({ root }) => root))];
  const suites: Suite[] = [];
  let lacking: UserError | undefined;
  for (const root of roots) {
    const [first, ...others] = projects.filter((each) => each.root === root);
    if (!first) continue;
    try {
      const elsewhere = roots.filter((each) => isBelow(root, each));
      suites.push({ functions: [first, ...others], command: commandOf(first, elsewhere) });
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      lacking ??= error;
    }
  }
  if (suites.length === 0 && lacking) throw lacking;
  return suites;
}

/** `node` in a script of package.json is the Node.js that runs the Function: an older one finds no tests in TypeScript. */
const withOwnNode = (places = ""): string =>
  [path.dirname(process.execPath), places].join(path.delimiter);

/** The exit code of the tests, or that of the signal which has ended them. */
async function finish(
  command: string,
  args: string[],
  {
    interrupted,
    ...options
  }: { cwd: string; env: NodeJS.ProcessEnv; interrupted: Promise<EndSignal> },
): Promise<number> {
  const inherited = { ...options, stdio: "inherit" as const };
  const child = await startProgram(command, args, inherited).catch((error: unknown) => {
    throw new UserError(`the tests cannot be started: ${messageOf(error)}`);
  });
  return new Promise((resolve) => {
    let signalled: EndSignal | undefined;
    const passOn = async () => {
      signalled = await interrupted;
      child.kill(signalled);
    };
    void passOn();
    // Of a signal that could not be sent.
    child.on("error", () => {});
    child.once("exit", (code, signal) => {
      const by = signalled ?? signal;
      resolve(by ? 128 + constants.signals[by] : (code ?? 1));
    });
  });
}

/** The directory's own script, or the default of its language. `elsewhere`: directories whose tests are others'. */
function commandOf(
  { root, runtime }: Project,
  elsewhere: readonly string[],
  mayBeScript = true,
): [string, ...string[]] {
  if (runtime.language === "python") return pythonTests(root);
  const script = mayBeScript ? testScript(root) : undefined;
  if (script) return [process.execPath, npmCli(), "test", "--silent", "--"];
  const files = globSync("**/*.test.{js,mjs,cjs,ts,mts}", {
    cwd: root,
    exclude: (name) => name === "node_modules",
  }).filter((file) => !elsewhere.some((each) => isBelow(each, path.join(root, file))));
  if (files.length > 0) return [process.execPath, "--test", ...files];
  throw new UserError(
    "this directory has no tests",
    'write one in handler.test.ts (its address is in SPRY_URL), or set "test" in the scripts of package.json',
  );
}

/** Of a directory below the tests' own. */
const isBelow = (directory: string, file: string): boolean => file.startsWith(directory + path.sep);

function testScript(root: string): string | undefined {
  const file = path.join(root, "package.json");
  if (!existsSync(file)) return undefined;
  const { scripts } = JSON.parse(readFileSync(file, "utf8")) as { scripts?: { test?: string } };
  return scripts?.test;
}

/** Tests of Python run as the code does: by its interpreter, with its packages. pytest may also be the one on PATH. */
async function withPackages(
  command: Suite["command"],
  interpreter: Interpreter | undefined,
): Promise<{ command: Suite["command"]; variables: Record<string, string> }> {
  if (!interpreter) return { command, variables: {} };
  const places = [interpreter.modules, process.env["PYTHONPATH"]].filter(
    (each) => each !== undefined && each !== "",
  );
  const variables: Record<string, string> =
    places.length === 0 ? {} : { PYTHONPATH: places.join(path.delimiter) };
  const [, , module = "", ...args] = command;
  const own: Suite["command"] = [
    interpreter.command,
    "-P",
    interpreter.moduleRunner,
    module,
    ...args,
  ];
  if (module !== "pytest") return { command: own, variables };
  const hasPytest = await new Promise<boolean>((resolve) => {
    const env = { ...process.env, ...variables };
    execFile(interpreter.command, ["-P", "-c", "import pytest"], { env }, (error) =>
      resolve(!error),
    );
  });
  return { command: hasPytest ? own : command, variables };
}

function pythonTests(root: string): [string, ...string[]] {
  const files = globSync(["test_*.py", "*_test.py", "tests/**/test_*.py"], { cwd: root });
  if (files.length === 0)
    throw new UserError("this directory has no tests", "write one in test_handler.py");
  const usesPytest = files.some((file) =>
    /^(?:import|from) pytest\b/m.test(readFileSync(path.join(root, file), "utf8")),
  );
  return usesPytest ? ["python3", "-m", "pytest"] : ["python3", "-m", "unittest", ...files];
}
