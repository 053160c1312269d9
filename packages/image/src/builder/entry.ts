import { fileURLToPath } from "node:url";

/** The builder's program, for whoever bundles it. */
export const builderEntry: string = fileURLToPath(new URL("./main.ts", import.meta.url));
