import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Credentials } from "./authorization.ts";

interface DockerConfig {
  auths?: Record<string, { auth?: string; username?: string; password?: string }>;
}

/**
 * Credentials of a docker `config.json` in `directory`, by registry host. A missing file means none.
 * Keys may be hosts or URLs, as `docker login` and Kubernetes' Secrets write them.
 */
export function readDockerConfig(directory: string): (host: string) => Credentials | undefined {
  const file = join(directory, "config.json");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return () => undefined;
    throw new Error(`reading registry credentials ${file}`, { cause });
  }
  const credentials = new Map<string, Credentials>();
  for (const [key, entry] of Object.entries(parse(text, file).auths ?? {})) {
    const read = credentialsOf(entry);
    if (read) credentials.set(hostOf(key), read);
  }
  return (host) => credentials.get(host === "docker.io" ? "index.docker.io" : host);
}

function parse(text: string, file: string): DockerConfig {
  try {
    return JSON.parse(text) as DockerConfig;
  } catch {
    // The parser's message quotes the text, which holds passwords.
    throw new Error(`reading registry credentials ${file}: no JSON`);
  }
}

function credentialsOf(entry: { auth?: string; username?: string; password?: string }) {
  if (entry.username !== undefined && entry.password !== undefined)
    return { username: entry.username, password: entry.password };
  const pair = Buffer.from(entry.auth ?? "", "base64").toString();
  const colon = pair.indexOf(":");
  if (colon < 0) return undefined;
  return { username: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

function hostOf(key: string): string {
  return key.replace(/^https?:\/\//, "").split("/")[0] ?? key;
}
