import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { registryAuthorityVariable } from "@spry/function";
import { readCertificates, readDockerConfig } from "../client/docker-config.ts";
import { RegistryClient } from "../client/registry-client.ts";
import { type Digest, parseDigest } from "../digest.ts";
import { buildFunctionImage } from "./build-function-image.ts";
import { type BuildOptions } from "./build-options.ts";
import { type Flags } from "./flags.ts";
import { FunctionBuild } from "./function-build.ts";
import { type SourceFile } from "./function-source.ts";
import { readSourceImage } from "./read-source-image.ts";
import { fetchSourceImage } from "./source-image.ts";
import { takeRepository } from "./source-repository.ts";
import { type Handover, writeHandover } from "./handover.ts";
import { type Monorepo, parseMonorepo } from "./monorepo.ts";

/** For a registry that restarts while the build is under way. */
const registryPatienceMs = 30_000;

/** Does what the flags say. Returns the image's name by digest once there is one; not yet, for a step with others after it. */
export async function runStep(
  flags: Flags,
  before: Handover | undefined,
): Promise<string | undefined> {
  const scratch = makeScratch(flags.scratch);
  try {
    return await takeStep(flags, optionsOf(flags, scratch), before);
  } finally {
    // A volume goes with its Pod; taking thousands of files out of it first would only take time.
    if (dirname(scratch) === tmpdir()) rmSync(scratch, { recursive: true, force: true });
  }
}

async function takeStep(
  flags: Flags,
  options: BuildOptions,
  before: Handover | undefined,
): Promise<string | undefined> {
  const { step, handover } = flags;
  const image = before ? undefined : flags["source-image"];
  const files = image === undefined ? undefined : await sourceIn(image, options, handover);
  if (image !== undefined) options.monorepo = fetchedSource(handover).monorepo;
  if (step === undefined) return (await buildFunctionImage(options, files)).image;
  const build = await FunctionBuild.open(options, before?.directory ?? options.scratch, files);
  if (step === "scripts") {
    if (!before) throw new Error(`the previous step left nothing in ${handover}`);
    await build.runScripts(before.fetched);
    return undefined;
  }
  const fetched = before?.fetched ?? (await build.fetch());
  const isFetching = step === "fetch";
  if (isFetching && fetched.needsScripts) {
    // The steps after this one have the volume, and no registry.
    if (image !== undefined) {
      await fetchSourceImage(options.client, image, options.source);
      takeRepository(handover, options.source, undefined);
    }
    writeHandover(handover, { directory: options.scratch, fetched });
    return undefined;
  }
  if (!before && fetched.needsScripts)
    throw new Error("the packages have scripts to run, and this Job has no container for them");
  return (await build.push(fetched)).image;
}

/** In memory where that is possible; otherwise it is in the directory then. */
async function sourceIn(
  image: string,
  { client, source, report }: BuildOptions,
  handover: string,
): Promise<SourceFile[] | undefined> {
  const files = await readSourceImage(client, image, report);
  if (!files) await fetchSourceImage(client, image, source, report);
  return takeRepository(handover, source, files);
}

function optionsOf(flags: Flags, scratch: string): BuildOptions {
  const configured = (name: string) => {
    const file = join(flags["registry-config"], name);
    return existsSync(file) ? file : undefined;
  };
  const { created, monorepo } = fetchedSource(flags.handover);
  return {
    ...flags,
    dependencyCache: flags["dependency-cache"],
    previousImage: digestIn(flags["previous-image"]),
    sourceDigest: flags["source-digest"],
    baseName: flags["base-name"],
    origin: {
      url: flags["source-url"],
      revision: flags["source-revision"],
      created,
    },
    monorepo,
    // Such an image is what `spry deploy` has made of a directory.
    isCompiled: flags["source-image"] !== undefined,
    client: new RegistryClient({
      credentials: readDockerConfig(dockerConfigDirectory()),
      certificates: readCertificates(dockerConfigDirectory()),
      authority: process.env[registryAuthorityVariable] || undefined,
      plain: flags["plain-registry"],
      patienceMs: registryPatienceMs,
    }),
    npmConfig: configured(".npmrc"),
    pipConfig: configured("pip.conf"),
    scratch,
    report: (line: string) => console.log(line),
  };
}

function digestIn(text: string | undefined): Digest | undefined {
  return text === undefined ? undefined : parseDigest(text);
}

/** What the fetcher of the source has left next to it: when it was committed, what else it needs, and what is not there. */
export function fetchedSource(handover: string): {
  created: string | undefined;
  monorepo: Monorepo | undefined;
  leftOut: string[];
} {
  let found: { committed?: unknown; monorepo?: unknown; leftOut?: unknown } = {};
  try {
    found = JSON.parse(readFileSync(join(handover, "source.json"), "utf8")) as typeof found;
  } catch {
    // Of an inline source there is nothing more to know.
  }
  const isDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(String(found.committed));
  return {
    created: isDate ? String(found.committed) : undefined,
    monorepo: parseMonorepo(found.monorepo, join(handover, "monorepo")),
    leftOut: Array.isArray(found.leftOut) ? found.leftOut.map(String) : [],
  };
}

/** A directory of its own: an emptyDir outlives a container that is started again. */
function makeScratch(directory: string): string {
  const parent = existsSync(directory) ? directory : tmpdir();
  mkdirSync(parent, { recursive: true });
  return mkdtempSync(join(parent, "build-"));
}

function dockerConfigDirectory(): string {
  return process.env["DOCKER_CONFIG"] ?? join(process.env["HOME"] ?? "/", ".docker");
}
