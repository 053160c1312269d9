import { PassThrough, type Readable, type Writable } from "node:stream";
import { type ExecProcess } from "./exec-process.ts";

/** A command that begins in a moment: its streams are there already, and are joined with its own then. */
export function deferredExec(
  beginning: Promise<ExecProcess>,
  { stdin, tty }: { stdin: boolean; tty: boolean },
): ExecProcess {
  const input = stdin ? new PassThrough() : undefined;
  const output = new PassThrough();
  const errors = tty ? undefined : new PassThrough();
  const exited = beginning.then((exec) => {
    join(input, exec.stdin);
    join(exec.stdout, output);
    join(exec.stderr, errors);
    return exec.exited;
  });
  exited.catch(() => {
    output.end();
    errors?.end();
  });
  const later = (action: (exec: ExecProcess) => void) => void beginning.then(action, () => {});
  return {
    stdin: input,
    stdout: output,
    stderr: errors,
    exited,
    resize: (size) => later((exec) => exec.resize(size)),
    kill: () => later((exec) => exec.kill()),
  };
}

function join(from: Readable | undefined, to: Writable | undefined): void {
  if (!from || !to) return;
  from.on("error", () => to.end());
  from.pipe(to);
}
