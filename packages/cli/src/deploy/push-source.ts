/** A directory's files as the source of its Function: checked, compiled where that is needed, and in the registry. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Function, functions } from "@spry/function";
import { createSourceImage, type LayerFile, RegistryError } from "@spry/image";
import { isNotFound, messageOf } from "@spry/kube";
import { type Connection } from "../connection.ts";
import { type Progress } from "../progress.ts";
import { type CompiledCode, compile, moduleNameOf, needsCompiling } from "../project/compile.ts";
import { listSource, megabytes, type SourceEntry } from "../project/files.ts";
import { importsFromOutside } from "../project/local-imports.ts";
import { hasBuildScript, type Project } from "../project/project.ts";
import { columnsOf } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";
import {
  compilerProblems,
  formatProblem,
  type SyntaxProblem,
  syntaxProblems,
} from "./check-syntax.ts";
import { refuseForeign } from "./foreign-programs.ts";
import { isPlainSource } from "./plain-source.ts";
import { repositoryAround } from "./repository-around.ts";
import { type SourceRegistry, sourceRegistry } from "./source-registry.ts";

/** The source as the cluster names it; `isPlain`: without packages and build script. */
export interface Sent {
  image: string;
  isPlain: boolean;
  /** The Function before; undefined for a new one. */
  now: Function | undefined;
  /** What compiled code is called, where the runtime does not find it by itself. */
  module: string | undefined;
}

export interface PushOptions {
  registryUrl: string | undefined;
  progress: Progress;
  /** Before each line, where several Functions are deployed. */
  prefix: string;
}

/** A directory that a tool is writing to is read so often. */
const maxTries = 5;

/** Checks the code, and sends what the registry lacks. Files that vanish or change while they are read are listed again. */
export async function pushSource(
  project: Project,
  connection: Connection,
  options: PushOptions,
): Promise<Sent> {
  for (let tries = 1; ; tries++) {
    try {
      return await pushOnce(project, connection, options);
    } catch (error) {
      if (!hasChanged(error)) throw error;
      if (tries === maxTries)
        throw new UserError(
          `the files of ${project.name} change while they are read: ${messageOf(error)}`,
          "deploy again when the program that writes them has ended, or list them in .spryignore",
        );
    }
  }
}

/** Of a file that was listed and is not there any more, or has another size. */
function hasChanged(error: unknown): boolean {
  const { code, message } = error as NodeJS.ErrnoException;
  return code === "ENOENT" || code === "ENOTDIR" || message.endsWith("it changed meanwhile");
}

async function pushOnce(
  project: Project,
  connection: Connection,
  { registryUrl, progress, prefix }: PushOptions,
): Promise<Sent> {
  const missing = refuseForeign(project);
  // On their way while the files are read.
  const reaching = sourceRegistry(connection, project.name, registryUrl);
  const before = functionNow(connection, project.name);
  for (const each of [reaching, before]) each.catch(() => {});
  const scratch = mkdtempSync(path.join(tmpdir(), "spry-deploy-"));
  const removeScratch = () => rmSync(scratch, { recursive: true, force: true });
  process.once("exit", removeScratch);
  try {
    const { files, keptBack, remark } = listSource(project.root, {
      // What a build script makes is made again in the image.
      handler: hasBuildScript(project.root) ? undefined : project.handler,
    });
    progress.waitFor(project.name, `${prefix}sending ${files.length} files`);
    const report = (sentBytes: number, text: string) =>
      progress.report(
        { event: "source", function: project.name, files: files.length, sentBytes },
        `${project.name}: ${files.length} ${files.length === 1 ? "file" : "files"}, ${text}`,
      );
    const layerFiles: LayerFile[] = files.map(({ path: name, file, size, isExecutable, link }) =>
      link
        ? { path: name, link: link.text }
        : { path: name, file, size, mode: isExecutable ? 0o755 : 0o644 },
    );
    const compiled = needsCompiling(project, files)
      ? await oneAtATime(() => compiledCode(project, files))
      : undefined;
    if (!compiled) await oneAtATime(() => refuseOutside(project));
    if (compiled) {
      // In place of a handler that has this name itself.
      const own = layerFiles.findIndex(({ path: name }) => name === compiled.path);
      if (own >= 0) layerFiles.splice(own, 1);
      layerFiles.push({ path: compiled.path, content: Buffer.from(compiled.text), mode: 0o644 });
    }
    const module = compiled && moduleNameOf(compiled);
    const around = await repositoryAround(project, path.join(scratch, "repository"));
    // It starts a process of its own, and is done by the time that the server has answered.
    const checking = compiled
      ? Promise.resolve([])
      : oneAtATime(() => syntaxProblems(project, files));
    checking.catch(() => {});
    const [source, reached, now] = await Promise.all([
      createSourceImage([...layerFiles, ...around], path.join(scratch, "source.tar")),
      reaching,
      before,
    ]);
    // What is sent in vain does no harm, and goes with the next cleaning.
    const pushing = send(reached, () => source.push(reached.client, reached.push));
    pushing.catch(() => {});
    const image = `${reached.pull}@${source.digest}`;
    const isPlain = around.length === 0 && isPlainSource(project, files);
    if (now?.spec.source.image === image) {
      // It may have been removed from the registry since.
      const { sentBytes } = await pushing;
      report(sentBytes, "unchanged");
      return { image, isPlain, now, module };
    }
    const problems = await checking;
    if (problems.length > 0) {
      await pushing.catch(() => {});
      throw refusalOf(problems);
    }
    if (remark !== undefined) progress.note(prefix + remark);
    for (const each of missing) progress.note(prefix + each);
    if (keptBack.length > 0) {
      const more = keptBack.length > 5 ? ` and ${keptBack.length - 5} more` : "";
      progress.note(
        `${prefix}not sent, because they may hold secrets: ${keptBack.slice(0, 5).join(", ")}${more} (\`!NAME\` in .spryignore sends one)`,
      );
    }
    const { sentBytes } = await pushing;
    report(sentBytes, `${megabytes(sentBytes)} sent`);
    return { image, isPlain, now, module };
  } finally {
    void reaching.then(
      (registry) => registry.close(),
      () => {},
    );
    progress.done(project.name);
    process.off("exit", removeScratch);
    removeScratch();
  }
}

let last: Promise<unknown> = Promise.resolve();

/** The compiler is one process for all Functions, and each of them ends it when it has been through. */
function oneAtATime<T>(work: () => Promise<T>): Promise<T> {
  const mine = last.then(work);
  last = mine.catch(() => {});
  return mine;
}

/** Under the name that the runtime looks for first. Nothing gets into it that would not be sent: what is left out may be secret. */
async function compiledCode(
  project: Project,
  files: readonly SourceEntry[],
): Promise<CompiledCode> {
  const sent = new Set(files.map((file) => file.path));
  try {
    const code = await compile(project);
    const other = code.inputs.find((input) => !sent.has(input));
    if (other === undefined) return code;
    throw new UserError(
      `${project.handler} needs ${other}, which is not among the files that are sent`,
      "move it into the directory, or take it out of .spryignore or .gitignore; nothing was deployed",
    );
  } catch (error) {
    const problems = compilerProblems(error);
    throw problems.length > 0 ? refusalOf(problems) : error;
  } finally {
    await (await import("esbuild")).stop();
  }
}

/** What is outside of the directory is not sent (docs/handlers.md). */
async function refuseOutside({ root, handler, runtime }: Project): Promise<void> {
  if (runtime.language !== "nodejs" || hasBuildScript(root)) return;
  const [outside] = await importsFromOutside(root, handler);
  if (!outside) return;
  throw new UserError(
    `${outside.from}:${outside.line} imports ${outside.specifier}, which is outside of the directory and not sent`,
    "move it into the directory, or make it a package of the repository's npm workspaces; nothing was deployed",
  );
}

function refusalOf(problems: readonly SyntaxProblem[]): UserError {
  return new UserError(
    problems.map((each) => formatProblem(each, columnsOf(process.stderr))).join("\n"),
    "nothing was deployed; what ran before still runs",
  );
}

export async function functionNow(
  { client, namespace }: Connection,
  name: string,
): Promise<Function | undefined> {
  try {
    return await client.get(functions, { namespace, name });
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

async function send<T>(registry: SourceRegistry, push: () => Promise<T>): Promise<T> {
  try {
    return await push();
  } catch (error) {
    if (!(error instanceof RegistryError)) throw error;
    const { address } = registry;
    const problem = registry.problem();
    if (problem) throw problem;
    const wayOut =
      error.status === 0
        ? "if this machine reaches it at another address, name that with --registry"
        : "check that its login in the namespace's Secret is valid";
    throw new UserError(
      `the source cannot be sent to the registry ${address}: ${messageOf(error)}`,
      wayOut,
    );
  }
}
