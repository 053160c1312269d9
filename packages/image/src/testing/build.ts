/** What a build needs around it: a registry with a runtime image, and a source. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  assembleImage,
  type BuildOptions,
  createLayer,
  type Logins,
  parseImageName,
  pushImage,
  RegistryClient,
} from "../index.ts";
import { startRegistry, temporaryDirectory } from "./registry.ts";

/** Of a builder that is started from its sources: Node.js keeps what it has compiled. */
export const builderEnvironment: NodeJS.ProcessEnv = {
  PATH: process.env["PATH"],
  NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
};

export type Files = Record<string, string | Buffer>;

export function write(directory: string, files: Files): string {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
  return directory;
}

/** A registry with a runtime image, and the options of a build against it. */
export async function given(
  files: Files,
  options: Partial<BuildOptions> = {},
  { logins }: { logins?: Logins } = {},
) {
  const { host, registry } = await startRegistry({ logins });
  const platform = logins?.platform();
  const client = new RegistryClient({ attempts: 1, credentials: () => platform });
  const layers = [await createLayer([{ path: "usr/src/app/server.cjs", content: "// server" }])];
  const config = { Labels: { "io.spry.interpreter": "node@24" } };
  const base = `${host}/spry/nodejs24:1`;
  await pushImage(client, assembleImage({ layers, config }), parseImageName(base));
  const lines: string[] = [];
  const build: BuildOptions = {
    client,
    source: write(temporaryDirectory(), files),
    runtime: "nodejs24",
    base,
    destination: `${host}/default-hello:1`,
    dependencyCache: `${host}/spry-cache/nodejs24`,
    scratch: temporaryDirectory(),
    report: (line) => lines.push(line),
    ...options,
  };
  return { host, registry, client, build, lines };
}
