/** In a container's root directory; read by its shell alone. */
export const startFile = "/.spry-start";

/** Names that a shell gives a meaning of its own, so that it cannot just be told their values. */
const special =
  /^(?:_|how|BASH\w*|DIRSTACK|EPOCH\w*|EUID|FUNCNAME|GROUPS|HIST\w*|IFS|LINENO|OPT\w*|PPID|PS\d|PWD|OLDPWD|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID)$/;
const identifier = /^[A-Za-z_]\w*$/;

/**
 * A script that sets the environment, goes to the directory `$2` and runs the program that follows: `$1` is `run` for
 * the first process of a container, which stays as the program's parent, because the first process of a PID namespace
 * gets no signal that it does not handle; `exec` for any other. The helpers that run before it have privileges, and
 * must not be given variables of a Pod's (`LD_PRELOAD`); on a command line every user of the machine could read them.
 */
export function startScript(env: Readonly<Record<string, string>>): string {
  const entries = Object.entries(env);
  const isPlain = ([name]: [string, string]) => identifier.test(name) && !special.test(name);
  const exports = entries.filter(isPlain).map(([name, value]) => `export ${name}=${quoted(value)}`);
  const others = entries
    .filter((entry) => !isPlain(entry))
    .map(([name, value]) => quoted(`${name}=${value}`));
  const words = others.length > 0 ? ["/usr/bin/env", ...others] : [];
  const program = [...words, '"$@"'].join(" ");
  return [
    "how=$1",
    `test -d "$2" || mkdir -p -- "$2"`,
    `cd -- "$2" || exit 126`,
    "shift 2",
    "unset PWD OLDPWD SHLVL SPRY_ROOT PATH",
    ...exports,
    `[ "$how" = run ] || exec ${program}`,
    // Shells say on their standard error which signal has ended a program; that is not for the log.
    "exec 9>&2 2>/dev/null",
    `(exec ${program} 2>&9 9>&-)`,
    "exit $?",
    "",
  ].join("\n");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
