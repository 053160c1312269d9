import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { type CompiledCode } from "../project/compile.ts";

/** Lets processes load compiled code in place of the handler's file, which stays as it is. Written before each load. */
export class CompiledHook {
  /** For `--require`. */
  readonly file: string;
  readonly #code: string;

  constructor(scratch: string) {
    this.file = path.join(scratch, "compiled.cjs");
    this.#code = path.join(scratch, "compiled.json");
    this.use(undefined);
    writeFileSync(this.file, `(${loadFrom.toString()})(${JSON.stringify(this.#code)});\n`);
  }

  /** `handler`: absolute; undefined for code that is loaded as it is. */
  use(compiled: { handler: string; code: CompiledCode } | undefined): void {
    const { handler, code } = compiled ?? {};
    const entry = handler && { url: pathToFileURL(handler).href, ...code, source: code?.text };
    writeFileSync(this.#code, JSON.stringify(entry ?? {}));
  }
}

/** Runs in the Function's process, from its text: it can use nothing of this file. */
function loadFrom(file: string): void {
  const { registerHooks } = process.getBuiltinModule("node:module");
  const { readFileSync } = process.getBuiltinModule("node:fs");
  const { pathToFileURL } = process.getBuiltinModule("node:url");
  // A process may wait for its Function, and is then to load what has been compiled meanwhile.
  const runtime = pathToFileURL(process.argv[1] ?? "").href;
  let loaded: { url?: string; format: string; source: string } | undefined;
  registerHooks({
    load(url, context, nextLoad) {
      if (!url.startsWith("file:") || url === runtime) return nextLoad(url, context);
      const code = loaded ?? JSON.parse(readFileSync(file, "utf8"));
      if (code.url !== url) return nextLoad(url, context);
      loaded = code;
      return { format: code.format, source: code.source, shortCircuit: true };
    },
  });
}
