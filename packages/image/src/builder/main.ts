/**
 * The builder's program: it runs in the build Job's Pod, in one container or, a step each, in three. Ends with 0
 * when its part is done, with 1 when the Function's author must change something, with 2 when another try may do better. The
 * termination message is the image's name, or what went wrong.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { readCertificates, readDockerConfig } from "../client/docker-config.ts";
import { RegistryClient } from "../client/registry-client.ts";
import { buildFunctionImage } from "./build-function-image.ts";
import { type BuildOptions } from "./build-options.ts";
import { FunctionBuild } from "./function-build.ts";
import { readHandover, writeHandover } from "./handover.ts";
import { type Monorepo, parseMonorepo } from "./monorepo.ts";
import { messageOf, UserError } from "./user-error.ts";

/** Kubernetes cuts longer ones. */
const terminationMessageLimit = 4096;

const usage = `usage: builder --source DIR --runtime NAME --base IMAGE --destination IMAGE
  --dependency-cache REPOSITORY  where dependency layers are kept
  --source-digest DIGEST         refuse to build anything but this source
  --source-url URL               repository that the image says it is from
  --source-revision ID           commit that the image says it is of
  --base-name IMAGE              what the image calls its base
  --title TEXT                   what the image is called
  --plain-registry HOST          a registry without TLS, such as the cluster's own (repeatable)
  --registry-config DIR          directory with an .npmrc, or a pip.conf
  --scratch DIR                  directory for temporary files
  --step fetch|scripts|push      do this part alone; \`scripts\` needs no credentials
  --handover DIR                 where one step tells the next what it has done`;

const steps = ["fetch", "scripts", "push"];

async function main(): Promise<void> {
  process.exitCode = await build();
}

async function build(): Promise<number> {
  let scratch: string | undefined;
  try {
    const flags = readFlags();
    scratch = makeScratch(flags.scratch);
    const configured = (name: string) => {
      const file = join(flags["registry-config"], name);
      return existsSync(file) ? file : undefined;
    };
    const { created, monorepo } = fetchedSource(flags.handover);
    const options = {
      ...flags,
      dependencyCache: flags["dependency-cache"],
      sourceDigest: flags["source-digest"],
      baseName: flags["base-name"],
      origin: {
        url: flags["source-url"],
        revision: flags["source-revision"],
        created,
      },
      monorepo,
      client: new RegistryClient({
        credentials: readDockerConfig(dockerConfigDirectory()),
        certificates: readCertificates(dockerConfigDirectory()),
        plain: flags["plain-registry"],
      }),
      npmConfig: configured(".npmrc"),
      pipConfig: configured("pip.conf"),
      scratch,
      report: (line: string) => console.log(line),
    };
    const image = await takeStep(flags.step, options, flags);
    if (image === undefined) return 0;
    console.log(`pushed ${image}`);
    writeTerminationMessage(JSON.stringify({ image }));
    return 0;
  } catch (error) {
    const message = messageOf(error);
    console.log(message);
    writeTerminationMessage(message);
    return error instanceof UserError ? 1 : 2;
  } finally {
    // A volume goes with its Pod; taking thousands of files out of it first would only take time.
    if (scratch !== undefined && dirname(scratch) === tmpdir())
      rmSync(scratch, { recursive: true, force: true });
  }
}

/** Returns the image's name by digest as soon as there is one. */
async function takeStep(
  step: string | undefined,
  options: BuildOptions,
  { handover, scratch: shared }: { handover: string; scratch: string },
): Promise<string | undefined> {
  if (step === undefined) return (await buildFunctionImage(options)).image;
  const before = readHandover(handover, shared);
  if (before && "image" in before) return before.image;
  const build = await FunctionBuild.open(options, before?.directory ?? options.scratch);
  if (step === "scripts") {
    if (!before) throw new Error(`there is nothing from the step before in ${handover}`);
    await build.runScripts(before.fetched);
    return undefined;
  }
  const fetched = before?.fetched ?? (await build.fetch());
  const isFetching = step === "fetch";
  if (isFetching && fetched.needsScripts) {
    writeHandover(handover, { directory: options.scratch, fetched });
    return undefined;
  }
  if (!before && fetched.needsScripts)
    throw new Error("the packages have scripts to run, and this Job has no container for them");
  const { image } = await build.push(fetched);
  if (isFetching) writeHandover(handover, { image });
  return image;
}

function readFlags() {
  const text = { type: "string" } as const;
  // Without a root file system of its own, the process finds its volumes below SPRY_ROOT.
  const root = process.env["SPRY_ROOT"] ?? "";
  const { values } = parseArgs({
    options: {
      source: text,
      runtime: text,
      base: text,
      destination: text,
      "dependency-cache": text,
      "source-digest": text,
      "source-url": text,
      "source-revision": text,
      "base-name": text,
      title: text,
      "plain-registry": { type: "string", multiple: true, default: [] },
      "registry-config": { ...text, default: `${root}/workspace/registry-config` },
      scratch: { ...text, default: `${root}/workspace/build` },
      handover: { ...text, default: `${root}/workspace/handover` },
      step: text,
    },
  });
  const { source, runtime, base, destination } = values;
  if (!source || !runtime || !base || !destination) throw new Error(usage);
  if (values.step !== undefined && !steps.includes(values.step)) throw new Error(usage);
  return { ...values, source, runtime, base, destination };
}

/** What whoever fetched the source has left beside it: when it was committed, and what else it needs. */
function fetchedSource(handover: string): {
  created: string | undefined;
  monorepo: Monorepo | undefined;
} {
  let found: { committed?: unknown; monorepo?: unknown } = {};
  try {
    found = JSON.parse(readFileSync(join(handover, "source.json"), "utf8")) as typeof found;
  } catch {
    // Of an inline source there is nothing more to know.
  }
  const isDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(String(found.committed));
  return {
    created: isDate ? String(found.committed) : undefined,
    monorepo: parseMonorepo(found.monorepo, join(handover, "monorepo")),
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

/** By itself on a cluster; the process sandbox says where the file is. */
function writeTerminationMessage(message: string): void {
  const file = process.env["SPRY_TERMINATION_LOG"] ?? "/dev/termination-log";
  try {
    writeFileSync(file, message.slice(-terminationMessageLimit));
  } catch (error) {
    console.log(`writing the termination message: ${messageOf(error)}`);
  }
}

void main();
