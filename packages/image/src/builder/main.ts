/**
 * The builder's program: it runs in the build Job's Pod. Ends with 0 when the image is pushed, with 1
 * when the Function's author must change something, with 2 when another try may do better. The
 * termination message is the image's name, or what went wrong.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { readCertificates, readDockerConfig } from "../client/docker-config.ts";
import { RegistryClient } from "../client/registry-client.ts";
import { buildFunctionImage } from "./build-function-image.ts";
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
  --scratch DIR                  directory for temporary files`;

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
    const { created, monorepo } = fetchedSource(flags.scratch);
    const { image } = await buildFunctionImage({
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
      report: (line) => console.log(line),
    });
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
    if (scratch?.startsWith(tmpdir())) rmSync(scratch, { recursive: true, force: true });
  }
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
    },
  });
  const { source, runtime, base, destination } = values;
  if (!source || !runtime || !base || !destination) throw new Error(usage);
  return { ...values, source, runtime, base, destination };
}

/** What whoever fetched the source has left beside it: when it was committed, and what else it needs. */
function fetchedSource(scratch: string): {
  created: string | undefined;
  monorepo: Monorepo | undefined;
} {
  let found: { committed?: unknown; monorepo?: unknown } = {};
  try {
    found = JSON.parse(readFileSync(join(scratch, "source.json"), "utf8")) as typeof found;
  } catch {
    // Of an inline source there is nothing more to know.
  }
  const isDate = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(String(found.committed));
  return {
    created: isDate ? String(found.committed) : undefined,
    monorepo: parseMonorepo(found.monorepo, join(scratch, "monorepo")),
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
