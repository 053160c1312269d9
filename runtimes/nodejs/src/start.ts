/**
 * What `node` is started with in an image: runs the runtime from its bytecode, if the bytecode next to it is of this
 * very Node.js; otherwise compiles its source.
 */
import { readFileSync } from "node:fs";
import { Script } from "node:vm";

type Wrapper = (
  exports: unknown,
  require: NodeJS.Require,
  module: NodeModule,
  filename: string,
  dirname: string,
  dynamicImport: (url: string) => Promise<unknown>,
) => void;

const filename = `${__dirname}/runtime.js`;

/** V8 takes none but its own. `compileRuntime` asks where it is looked for. */
export const bytecodeFile = `${__dirname}/runtime-${process.version}-${process.arch}.bytecode`;

const script = new Script(readFileSync(filename, "latin1"), {
  filename,
  cachedData: readBytecode(),
});

function readBytecode(): Buffer | undefined {
  try {
    return readFileSync(bytecodeFile);
  } catch {
    return undefined;
  }
}

// Preloaded into a main program, it is not for the processes and threads that the program itself starts.
if (!process.execArgv.includes(__filename) || process.env["SPRY_MAIN_PROGRAM"] !== undefined) {
  const run = script.runInThisContext() as Wrapper;
  run(exports, require, module, filename, __dirname, (url) => import(url));
}
