/** The programs of a base layer for scripts of packages, exec probes, `kubectl cp` (which runs `tar`), and users in a container's shell. */
export const shellTools = (
  "sh env basename cat chmod cp cut date df dirname du echo false find grep gzip head id kill ln ls mkdir mv printenv " +
  "pwd readlink rm rmdir sed sleep sort stat tail tar tee test touch tr true uname uniq wc whoami xargs"
).split(" ");

/**
 * Programs of `/bin` that are scripts of ours: those of distributions need libraries of many times their size. `ps` lists the
 * container's processes, whatever options it is given.
 */
export const shellScripts: Readonly<Record<string, string>> = {
  which: `#!/bin/sh
status=0
for name in "$@"; do
  case $name in -*) continue ;; esac
  command -v -- "$name" || status=1
done
exit $status
`,
  ps: `#!/bin/sh
printf '%7s %7s %s\\n' PID PPID CMD
for dir in /proc/[0-9]*; do
  { read -r stat < "$dir/stat"; } 2>/dev/null || continue
  command=$(tr '\\000' ' ' < "$dir/cmdline" 2>/dev/null)
  # A process without arguments is shown by its name.
  name=\${stat#*(}
  [ -n "$command" ] || command="[\${name%)*}]"
  # Behind the name, which may contain anything: the state, then the parent.
  set -- \${stat##*) }
  printf '%7s %7s %s\\n' "\${dir#/proc/}" "$2" "$command"
done
`,
};
