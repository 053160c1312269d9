import { createHash } from "node:crypto";
import { dump } from "js-yaml";
import {
  annotations,
  defaultRuntime,
  type Function,
  type FunctionRevision,
  isServedOnDemand,
  latestTraffic,
} from "@spry/function";
import { printableJson } from "../printable-json.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { findFunction, findHistory } from "../find-function.ts";
import { fittingTable } from "../table.ts";
import { columnsOf } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";

export interface HistoryOptions extends GlobalOptions {
  output?: string;
}

/** A revision, as `-o json` prints it. */
export interface HistoryEntry {
  revision: number;
  time: string;
  author?: string;
  runtime: string;
  /** `inline` with a digest of the code, `image` with that of a directory's files, or `git`. */
  source:
    | { type: "inline" | "image"; digest: string }
    | { type: "git"; url: string; reference: string; commit: string };
  image: string;
  buildKey: string;
  /** Percent of the requests that it gets now. */
  serves: number;
  /** Whether it has ever been ready. */
  served: boolean;
}

/** Whether the version has been ready: the controller marks it then. */
export const hasServed = ({ metadata }: FunctionRevision): boolean =>
  metadata.annotations?.[annotations.served] === "true";

/** Prints the revisions of a Function, newest first. */
export async function history(name: string, options: HistoryOptions): Promise<void> {
  const { output } = options;
  if (output !== undefined && output !== "json" && output !== "yaml")
    throw new UserError(`unknown output format ${output}`, "use json or yaml");
  const { client, namespace } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const entries = (await findHistory(client, fn)).map((revision) => entryOf(fn, revision));
  if (output === "json") return console.log(printableJson(entries, 2));
  if (output === "yaml") return console.log(dump(entries, { noRefs: true }).trimEnd());
  for (const line of historyTable(entries, columnsOf(process.stdout))) console.log(line);
}

export function entryOf(fn: Function, stored: FunctionRevision): HistoryEntry {
  const { revision, data } = stored;
  const { spec, commit = "", image, buildKey, author, time } = data;
  const { inline, gitRepository, image: files } = spec.source;
  return {
    revision,
    time,
    ...(author === undefined ? {} : { author }),
    runtime: spec.runtime ?? defaultRuntime,
    source: gitRepository
      ? { type: "git", url: gitRepository.url, reference: gitRepository.reference, commit }
      : files === undefined
        ? {
            type: "inline",
            digest: digestOf(JSON.stringify([inline?.source, inline?.dependencies])),
          }
        : { type: "image", digest: files.split("@")[1] ?? "" },
    image,
    buildKey,
    serves: shareOf(fn, revision),
    served: hasServed(stored),
  };
}

/** `columns`: of the terminal, if it is one. */
export function historyTable(entries: readonly HistoryEntry[], columns?: number): string[] {
  return fittingTable(
    ["VERSION", "TIME", "AUTHOR", "RUNTIME", "SOURCE", "IMAGE", "SERVES"],
    entries.map((entry, index) => [
      String(entry.revision),
      entry.time,
      entry.author ?? "-",
      entry.runtime,
      sourceText(entry),
      entry.image.split("@")[1]?.slice(0, digestLength) ?? entry.image,
      useOf(entry, index === 0),
    ]),
    { columns, optional: ["IMAGE", "RUNTIME", "AUTHOR"] },
  );
}

function useOf({ serves, served }: HistoryEntry, isNewest: boolean): string {
  if (serves > 0) return `${serves} %`;
  if (served) return "";
  return isNewest ? "not ready" : "never ready";
}

/** In words, for both commands: `main at 1a2b3c4d5e6f`, `inline sha256:1a2b3c4d5e6f`. */
export function sourceText({ source }: Pick<HistoryEntry, "source">): string {
  if (source.type !== "git")
    return `${source.type === "image" ? "directory" : "inline"} ${source.digest.slice(0, digestLength)}`;
  const commit = source.commit.slice(0, 12);
  return source.reference === source.commit ? commit : `${source.reference} at ${commit}`;
}

/** As long as `sha256:` and twelve digits. */
const digestLength = 19;

/** By traffic that the Function desires, of what is ready; without any, the newest ready revision gets all. */
function shareOf({ spec, status }: Function, revision: number): number {
  const shares = isServedOnDemand(spec) && spec.traffic?.length ? spec.traffic : latestTraffic;
  return shares
    .filter((share) => (share.revision ?? status?.revision) === revision)
    .reduce((sum, { percent = 0 }) => sum + percent, 0);
}

function digestOf(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
