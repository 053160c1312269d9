import { existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import path from "node:path";
import { type Runtime, runtimes } from "@spry/function";
import {
  BuildError,
  buildFunctionImage,
  type BuildOptions,
  createRegistry,
  parseImageName,
  readDockerConfig,
  RegistryClient,
  RegistryError,
  writeImageLayout,
} from "@spry/image";
import { messageOf } from "@spry/kube";
import { copyMonorepo, GitError } from "@spry/source";
import { runtimeFilesOf } from "../platform/runtime-files.ts";
import { readAuthority } from "../registry-authority.ts";
import { UserError } from "../user-error.ts";

export interface BuildCommand {
  tag: string;
  runtime: string;
  base?: string;
  output?: string;
  /** A file with the certificate of the registry's private authority. */
  registryCa?: string;
}

/** Builds an image and pushes it, or leaves it in a directory. Prints its name by digest. */
export async function build(source: string, options: BuildCommand): Promise<void> {
  if (!statSync(source, { throwIfNoEntry: false })?.isDirectory())
    throw new UserError(
      `${source} is not a directory`,
      "specify the directory with the Function's files",
    );
  const runtime = runtimes.find(({ name }) => name === options.runtime);
  if (!runtime)
    throw new UserError(
      `unknown runtime ${options.runtime}`,
      `use one of ${runtimes.map(({ name }) => name).join(", ")}`,
    );
  const { registryCa } = options;
  const authority = registryCa === undefined ? undefined : readAuthority(registryCa);
  const client = new RegistryClient({ credentials: readDockerConfig(dockerConfig()), authority });
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-build-"));
  try {
    const { repository } = parseImageName(options.tag);
    const work: Work = {
      source,
      runtime: runtime.name,
      base: options.base ?? "host:",
      runtimeLayer: options.base ? undefined : await runtimeFilesOf(runtime),
      title: path.posix.basename(repository),
      npmConfig: fileAtHome(".npmrc"),
      pipConfig: fileAtHome(".config/pip/pip.conf"),
      monorepo: await monorepoAround(source, runtime, path.join(scratch, "monorepo")),
      scratch,
      report: (line) => console.error(line),
    };
    const { output, tag } = options;
    const image =
      output === undefined
        ? await push(work, tag, client)
        : await writeTo(
            { dir: path.resolve(output), tag, data: path.join(scratch, "registry") },
            work,
            client,
          );
    console.log(image);
  } catch (error) {
    throw explained(error, options.tag);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** Mistakes that users can correct are shown without a stack; anything else is a bug, for which the stack is needed. */
function explained(error: unknown, tag: string): unknown {
  if (error instanceof BuildError || error instanceof GitError) return new UserError(error.message);
  const refusal = causesOf(error).find((cause) => cause instanceof RegistryError);
  if (refusal) return new UserError(messageOf(error), wayOutOf(refusal, tag));
  // Only what we threw ourselves has this very class.
  const isOurs = error instanceof Error && error.constructor === Error;
  return isOurs ? new UserError(messageOf(error)) : error;
}

function wayOutOf({ status }: RegistryError, tag: string): string | undefined {
  const [host = ""] = tag.split("/");
  if (status === 0) return "check the registry's name, and that it can be reached from here";
  if (status === 401 || status === 403)
    return `sign in with docker login ${host}: spry uses its logins, from ${dockerConfig()}`;
  return undefined;
}

function causesOf(error: unknown): unknown[] {
  const causes = [];
  for (let at = error; at instanceof Error && causes.length < 8; at = at.cause) causes.push(at);
  return causes;
}

const dockerConfig = (): string => process.env["DOCKER_CONFIG"] ?? path.join(homedir(), ".docker");

type Work = Omit<BuildOptions, "client" | "destination">;

/** The npm packages around the directory that it depends on, as a Git Function's `baseDir` has them. */
async function monorepoAround(
  source: string,
  { language }: Runtime,
  directory: string,
): Promise<BuildOptions["monorepo"]> {
  if (language !== "nodejs") return undefined;
  const found = await copyMonorepo(source, directory);
  return found && { ...found, directory: path.join(directory, found.root) };
}

async function push(work: Work, tag: string, client: RegistryClient): Promise<string> {
  const { image } = await buildFunctionImage({ ...work, client, destination: tag });
  return image;
}

/** By way of a registry that is there only for this build. */
async function writeTo(
  { dir, tag, data }: { dir: string; tag: string; data: string },
  work: Work,
  client: RegistryClient,
): Promise<string> {
  const name = parseImageName(tag);
  const registry = createRegistry({ dir: data });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  try {
    const destination = `127.0.0.1:${server.port}/${name.repository}:build`;
    const { image } = await buildFunctionImage({ ...work, client, destination });
    const built = parseImageName(image);
    const { digest, bytes, manifest } = await client.getManifest(built);
    if ("manifests" in manifest) throw new Error(`${image} is an index`);
    const bodyOf = (blob: { digest: typeof digest; size: number }) => ({
      size: blob.size,
      open: () => client.getBlob(built, blob),
    });
    const content = await client.readBlob(built, manifest.config, { limit: 4 * 1024 * 1024 });
    const layers = manifest.layers.map((layer) => ({
      descriptor: layer,
      // Stands in the configuration, which is there already.
      diffId: layer.digest,
      body: bodyOf(layer),
    }));
    const whole = { digest, bytes, mediaType: manifest.mediaType ?? "" };
    await writeImageLayout({ ...whole, config: { ...manifest.config, content }, layers }, dir, tag);
    return `oci:${dir}@${digest}`;
  } finally {
    await server.close();
    await registry.close();
  }
}

function fileAtHome(name: string): string | undefined {
  const file = path.join(homedir(), name);
  return existsSync(file) ? file : undefined;
}
