import { fileURLToPath } from "node:url";

/** The builder's program, for the code that bundles it. */
export const builderEntry: string = fileURLToPath(new URL("./main.ts", import.meta.url));
