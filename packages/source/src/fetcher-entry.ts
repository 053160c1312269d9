import { fileURLToPath } from "node:url";

/** The program that fetches a build's source, for whoever bundles it; it needs only this folder. */
export const sourceFetcherEntry: string = fileURLToPath(
  new URL("./fetcher-main.ts", import.meta.url),
);
