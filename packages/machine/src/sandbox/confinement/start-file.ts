/** In a container's root directory; read by its shell alone. */
export const startFile = "/.spry-start";

/** Variables to which a shell gives a meaning of its own, so that it cannot simply be given their values. */
const special =
  /^(?:_|how|BASH\w*|DIRSTACK|EPOCH\w*|EUID|FUNCNAME|GROUPS|HIST\w*|IFS|LINENO|OPT\w*|PPID|PS\d|PWD|OLDPWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID)$/;
/** As many as in containers of an OCI runtime. */
export const maxProcesses = 1024;
const identifier = /^[A-Za-z_]\w*$/;

/** For a container's user alone to read. Path → text. */
export type StartFiles = Readonly<Record<string, string>>;

/** Where the container finds the Node.js that runs this program, if it needs it. */
const node = process.execPath;
const environmentFile = "/.spry-environment.cjs";

/**
 * A script that sets the environment, goes to the directory `$2` and runs the program that follows: `$1` is `run` for
 * the first process of a container, which stays as the program's parent, because the first process of a PID namespace
 * gets no signal that it does not handle; `exec` for any other. The helpers that run before it have privileges, and
 * must not be given variables of a Pod's (`LD_PRELOAD`); on a command line every user of the machine could read them.
 * A variable that no shell can set is set by a program of Node.js, from a file: see `filesFor`. The files are in the
 * root directory that the container sees, or in `dir` if it has none of its own.
 */
export function startFiles(env: Readonly<Record<string, string>>, dir = ""): StartFiles {
  const file = dir + environmentFile;
  const isPlain = isForShell(env);
  const exports = isPlain
    ? Object.entries(env).map(([name, value]) => `export ${name}=${quoted(value)}`)
    : [];
  const words = isPlain ? "" : `/usr/bin/env -i ${quoted(node)} --no-warnings ${quoted(file)} `;
  const program = `${words}"$@"`;
  const script = [
    "how=$1",
    `test -d "$2" || mkdir -p -- "$2"`,
    `cd -- "$2" || exit 126`,
    "shift 2",
    // A user of its own: the limit is its Pod's. Shells have one name or the other for it.
    ...(dir === "" ? [] : [`ulimit -u ${maxProcesses} 2>/dev/null || ulimit -p ${maxProcesses}`]),
    "unset PWD OLDPWD SHLVL SPRY_ROOT PATH",
    ...exports,
    `[ "$how" = run ] || exec ${program}`,
    // Shells say on their standard error which signal has ended a program; that is not for the log.
    "exec 9>&2 2>/dev/null",
    `(exec ${program} 2>&9 9>&-)`,
    "exit $?",
    "",
  ].join("\n");
  return isPlain
    ? { [dir + startFile]: script }
    : { [dir + startFile]: script, [file]: environmentProgram(env) };
}

/** What a container has to see of the machine, besides, for its variables. */
export function filesFor(env: Readonly<Record<string, string>>): string[] {
  return isForShell(env) ? [] : [node];
}

function isForShell(env: Readonly<Record<string, string>>): boolean {
  return Object.keys(env).every((name) => identifier.test(name) && !special.test(name));
}

/**
 * Runs the program of its arguments with exactly these variables, and stays as its parent: Node.js closes descriptor 3 (ready)
 * when it becomes another program. It takes 40 ms and 40 MB, which variables with ordinary names do not.
 */
function environmentProgram(env: Readonly<Record<string, string>>): string {
  return `const [program, ...args] = process.argv.slice(2);
const { fstatSync } = require("node:fs");
const isOpen = (fd) => {
  try {
    return fstatSync(fd).isFIFO() || fstatSync(fd).isSocket();
  } catch {
    return false;
  }
};
const stdio = ["inherit", "inherit", "inherit", ...(isOpen(3) ? [3] : [])];
const child = require("node:child_process").spawn(program, args, { env: ${JSON.stringify(env)}, stdio });
const signals = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR2"];
for (const signal of signals) process.on(signal, () => child.kill(signal));
child.once("error", ({ message }) => {
  console.error(message);
  process.exit(127);
});
child.once("exit", (code, signal) => {
  if (!signal) process.exit(code);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
});
`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
