import { spawn } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { constants } from "node:os";
import path from "node:path";
import { endOnInterrupt, type EndSignal, untilInterrupted } from "../interruption.ts";
import { runQuietly } from "../dev/quiet-runner.ts";
import { openProject, type Project } from "../project/project.ts";
import { npmCli } from "../platform/npm-cli.ts";
import { UserError } from "../user-error.ts";

/** Runs a directory's tests against it; the exit code is theirs. `args` are passed on to the runner of the tests. */
export async function test(directory: string, args: readonly string[]): Promise<void> {
  const project = openProject(directory);
  const [command, ...own] = commandOf(project);
  const { namespace = "default" } = project.config;
  const restore = endOnInterrupt(() => console.error("interrupted: the tests were not run"));
  const run = await runQuietly(() => openProject(directory), {
    namespace,
    report: (line) => console.error(line),
  });
  restore();
  // Ctrl-C also reaches the tests: this command ends when they do.
  const interrupted = untilInterrupted();
  let code: number;
  try {
    code = await finish(command, [...own, ...args], {
      cwd: project.root,
      env: { ...process.env, PATH: withOwnNode(process.env["PATH"]), SPRY_URL: run.url },
      interrupted,
    });
  } finally {
    await run.stop();
  }
  process.exit(code);
}

/** `node` in a script of package.json is the Node.js that runs the Function: an older one finds no tests in TypeScript. */
const withOwnNode = (places = ""): string =>
  [path.dirname(process.execPath), places].join(path.delimiter);

/** The exit code of the tests, or that of the signal which has ended them. */
function finish(
  command: string,
  args: string[],
  {
    interrupted,
    ...options
  }: { cwd: string; env: NodeJS.ProcessEnv; interrupted: Promise<EndSignal> },
): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: "inherit" });
    let signalled: EndSignal | undefined;
    const passOn = async () => {
      signalled = await interrupted;
      child.kill(signalled);
    };
    void passOn();
    child.once("error", (error) =>
      reject(new UserError(`the tests cannot be started: ${error.message}`)),
    );
    child.once("exit", (code, signal) => {
      const by = signalled ?? signal;
      resolve(by ? 128 + constants.signals[by] : (code ?? 1));
    });
  });
}

/** The directory's own script, or the default of its language. */
function commandOf({ root, runtime }: Project): [string, ...string[]] {
  if (runtime.language === "python") return pythonTests(root);
  const script = testScript(root);
  if (script) return [process.execPath, npmCli(), "test", "--silent", "--"];
  const files = globSync("**/*.test.{js,mjs,cjs,ts,mts}", {
    cwd: root,
    exclude: (name) => name === "node_modules",
  });
  if (files.length > 0) return [process.execPath, "--test", ...files];
  throw new UserError(
    "this directory has no tests",
    'write one in handler.test.ts (its address is in SPRY_URL), or set "test" in the scripts of package.json',
  );
}

function testScript(root: string): string | undefined {
  const file = path.join(root, "package.json");
  if (!existsSync(file)) return undefined;
  const { scripts } = JSON.parse(readFileSync(file, "utf8")) as { scripts?: { test?: string } };
  return scripts?.test;
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
