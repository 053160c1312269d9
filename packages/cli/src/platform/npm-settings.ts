/**
 * This machine's way to its package registry: mirror, proxy, certificates. Builds run with a clean
 * environment and know nothing of a person's npm configuration, so what npm needs to get through is
 * written to a file of its own. Credentials, also those in addresses of proxies, are not part of it: they belong into the
 * Secret `serverless-package-registry-config`.
 */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type Logger, messageOf } from "@spry/kube";
import { writeAtomically } from "./data-dir.ts";
import { npmCli } from "./npm-cli.ts";
import { withoutCredentials } from "./without-credentials.ts";

const carried = new Set([
  "registry",
  "ca",
  "cafile",
  "strict-ssl",
  "proxy",
  "https-proxy",
  "noproxy",
  "maxsockets",
  "fetch-retries",
  "fetch-timeout",
]);

/** Asks this machine's npm for its settings and writes those to the file. Never fails: builds then use npm's defaults. */
export async function writeNpmSettings(file: string, log: Logger): Promise<void> {
  try {
    // Read by builds, which run as other users; the data directory itself is open to none.
    writeAtomically(file, npmrcOf(await settings()), 0o644);
  } catch (error) {
    log.warn({ error: messageOf(error) }, "this machine's npm settings could not be read");
  }
}

async function settings(): Promise<Record<string, unknown>> {
  const args = ["config", "list", "--json"];
  const options = { timeout: 20_000, maxBuffer: 1024 * 1024 };
  const run = promisify(execFile);
  // The user's own npm knows where its global configuration is; the project's does not.
  const { stdout } = await run("npm", args, options).catch(() =>
    run(process.execPath, [npmCli(), ...args], options),
  );
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Exported for its test. */
export function npmrcOf(all: Record<string, unknown>): string {
  const lines = Object.entries(all)
    .filter(([key]) => carried.has(key) || /^@[^/:]+:registry$/.test(key))
    .flatMap(([key, value]) =>
      Array.isArray(value) ? value.map((one) => [`${key}[]`, one]) : [[key, value]],
    )
    .filter(([, value]) => value !== null && value !== "" && typeof value !== "object")
    .map(([key = "", value]) => `${key}=${textOf(key, value)}`);
  return `${lines.join("\n")}\n`;
}

function textOf(key: string, value: unknown): string {
  const text = String(value).replaceAll("\n", "\\n");
  return /registry$|proxy$/.test(key) ? withoutCredentials(text) : text;
}
