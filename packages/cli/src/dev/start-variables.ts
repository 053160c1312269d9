/** Variables that a process needs before it gets its directory, and those that come with it. */
import { defaultInspectPorts } from "./inspect-ports.ts";

/** As the runtime gets it (`SPRY_INSPECT`). */
export function inspectText(
  language: keyof typeof defaultInspectPorts,
  { port = defaultInspectPorts[language], wait }: { port: number | undefined; wait: boolean },
): string {
  return `127.0.0.1:${port}${wait ? ",wait" : ""}`;
}

/** What an interpreter reads when it starts, and never again (docs/runtime-contract.md 1.5). */
export const neededAtStart =
  /^(?:NODE_|UV_|SSL_|PYTHON|LD_|MALLOC_|GLIBC_TUNABLES|PATH$|HOME$|TMPDIR$|SPRY_SERVICES$)/;
export const tooLateForPython = /^(?:PYTHON(?!PATH$|UNBUFFERED$)|LD_|MALLOC_|GLIBC_TUNABLES)/;

type Variables = Record<string, string>;
export const pick = (env: Variables, names: RegExp): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => names.test(name)));
export const without = (env: Variables, names: RegExp): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.test(name)));
