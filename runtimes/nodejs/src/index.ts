import { fileURLToPath } from "node:url";

/**
 * The Node.js runtime's program, for whoever bundles it into one CommonJS file (`server.cjs`). The
 * Function lives in `function/` beside that file.
 */
export const entry: string = fileURLToPath(new URL("./main.ts", import.meta.url));

/** What lies beside `server.cjs` and `function/`: modules that a Function may import without depending on them. */
export { providedFiles } from "./provided-files.ts";
