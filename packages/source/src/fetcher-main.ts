/**
 * The program of a build's init container: it fetches the source, so that what runs foreign code
 * later, the installer, never sees the repository's credentials. Ends with 0 when the files are
 * there, with 1 when the Function's author must change something, with 2 when another try may do
 * better. The termination message is what went wrong.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type AuthType, type GitCredentials, readCredentials } from "./credentials.ts";
import { fetchSource, type FetchRequest } from "./fetch-source.ts";
import { GitError } from "./git-error.ts";
import { type ServiceLookup } from "./git-server.ts";

const usage = `usage: fetcher --url URL --commit ID --base-dir DIR --destination DIR
  --reference NAME       what the commit was found by, for servers that refuse to send by id
  --auth basic|key       how to log in
  --credentials DIR      directory with the keys of the Secret
  --scratch DIR          directory for temporary files
  --handover DIR         where to leave what the builder must know besides the files`;

async function main(): Promise<void> {
  process.exitCode = await fetch();
}

async function fetch(): Promise<number> {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  try {
    const { handover, ...request } = readRequest();
    const report = (line: string) => console.log(line);
    const monorepo = handover === undefined ? undefined : join(handover, "monorepo");
    const found = await fetchSource({ ...request, monorepo, signal: stop.signal, report });
    // For the builder, which has the same volume.
    if (handover !== undefined) writeFileSync(join(handover, "source.json"), JSON.stringify(found));
    console.log(`fetched commit ${request.commit}`);
    return 0;
  } catch (error) {
    const text = `fetching the source: ${error instanceof Error ? messageOf(error) : "unknown"}`;
    console.log(text);
    writeTerminationMessage(text);
    return error instanceof GitError && error.failure === "unrecoverable" ? 1 : 2;
  }
}

function readRequest(): FetchRequest & { handover: string | undefined } {
  const text = { type: "string" } as const;
  const names = ["url", "commit", "reference", "base-dir", "destination"] as const;
  const { values } = parseArgs({
    options: {
      ...(Object.fromEntries(names.map((name) => [name, text])) as Record<
        (typeof names)[number],
        typeof text
      >),
      auth: text,
      credentials: text,
      scratch: text,
      handover: text,
      allow: { type: "string", multiple: true },
    },
  });
  const { url, commit, reference, destination, auth, credentials, scratch, handover } = values;
  const { allow: allowed = [] } = values;
  const baseDir = values["base-dir"];
  if (!url || !commit || !baseDir || !destination) throw new Error(usage);
  return {
    url,
    commit,
    reference: reference ?? commit,
    baseDir,
    destination,
    scratch: scratch !== undefined && existsSync(scratch) ? scratch : undefined,
    handover,
    allowed,
    services: process.env["SPRY_SERVICES"] ? servicesByName : undefined,
    credentials: auth ? credentialsIn(auth, credentials ?? "") : undefined,
  };
}

/** In the process sandbox only Node.js knows the names of Services (docs/adr/0006): this process connects to them for Git. */
const servicesByName: ServiceLookup = async (host, port) =>
  /\.svc(?:\.cluster\.local)?$/.test(host) ? [{ host, port }] : undefined;

function credentialsIn(auth: string, directory: string): GitCredentials {
  if (auth !== "basic" && auth !== "key") throw new Error(usage);
  const type: AuthType = auth;
  return readCredentials(type, (key) => {
    const file = join(directory, key);
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  });
}

function messageOf(error: Error): string {
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

/** By itself on a cluster; the process sandbox says where the file is. */
function writeTerminationMessage(message: string): void {
  const file = process.env["SPRY_TERMINATION_LOG"] ?? "/dev/termination-log";
  try {
    writeFileSync(file, message.slice(0, 4096));
  } catch {
    // The last lines of the log then stand for it.
  }
}

void main();
