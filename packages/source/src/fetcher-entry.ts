import { fileURLToPath } from "node:url";

/** The program that fetches a build's source, to be bundled; it needs only this room. */
export const sourceFetcherEntry: string = fileURLToPath(
  new URL("./fetcher-main.ts", import.meta.url),
);
