/** The Node.js runtime as images have it; how it serves a Function is not to be called, but started. */
export { compileRuntime } from "./image/compile-runtime.ts";
export { layOut } from "./image/lay-out.ts";
export { bundleRuntime, type RuntimeFile } from "./image/runtime-files.ts";
/** What `spry test` does for tests in TypeScript, as the runtime does for Functions. */
export { findTypeScript } from "./typescript-names.ts";
/** Which file `npm start` runs: the runtime looks for a Function there, too. */
export { startCommandOf } from "./start-script.ts";
/** Programs for other platforms are refused before they are sent. */
export { bindingsIn, bindingsRemark, foreignCode } from "./foreign-code.ts";
export { promisedIn, variablesRemark } from "./wrangler-file.ts";
