import {
  annotations,
  defaultFunction,
  type Function,
  type FunctionRevision,
  functions,
  isSameVersion,
  restoredSpec,
} from "@spry/function";
import { isConflict, type KubeClient, mergePatchBetween } from "@spry/kube";
import { connect, type GlobalOptions, urlOf } from "../connection.ts";
import { findFunction, findHistory } from "../find-function.ts";
import { followUntilRunning } from "../follow.ts";
import { Progress } from "../progress.ts";
import { columnsOf, wrapped } from "../terminal-width.ts";
import { UserError } from "../user-error.ts";
import { entryOf, hasServed, sourceText } from "./history.ts";

export interface RollbackOptions extends GlobalOptions {
  to?: number;
  wait: boolean;
  timeout: number;
}

/** The status of a Function is written all the time, which makes a conditional write fail. */
const maxAttempts = 10;

/** Returns a Function to an earlier revision: its spec is applied again, and its image is used again, as a new revision. */
export async function rollback(name: string, options: RollbackOptions): Promise<void> {
  const progress = new Progress();
  progress.whenInterrupted("nothing was rolled back");
  await progress.run(() => rollbackWith(name, options, progress));
}

async function rollbackWith(
  name: string,
  options: RollbackOptions,
  progress: Progress,
): Promise<void> {
  const begin = performance.now();
  const { client, namespace, gateway } = await connect(options);
  const { stored, target, before } = await restore(client, namespace, name, options.to);
  const { runtime, image, ...entry } = entryOf(stored, target);
  const what = `${runtime}, ${sourceText(entry)}, image ${image.split("@")[1]?.slice(0, 19)}`;
  const columns = columnsOf(process.stderr);
  progress.note(
    wrapped(`function/${name} rolled back to version ${target.revision} (${what})`, columns, 2),
  );
  for (const line of notesOn(before, stored)) progress.note(wrapped(`note: ${line}`, columns, 2));
  if (!options.wait) return;
  await followUntilRunning(client, {
    name,
    namespace,
    generation: stored.metadata.generation ?? 0,
    timeoutMs: options.timeout * 1000,
    progress,
  });
  const { status } = await findFunction(client, namespace, name);
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  if (status?.revision !== undefined)
    console.error(`version ${status.revision} serves after ${seconds} s`);
  if (gateway) console.log(urlOf(gateway, name, namespace));
}

async function restore(client: KubeClient, namespace: string, name: string, to?: number) {
  let generation: number | undefined;
  for (let attempt = 1; ; attempt++) {
    const before = await findFunction(client, namespace, name);
    if (before.metadata.deletionTimestamp)
      throw new UserError(`Function ${name} is being deleted and cannot be rolled back`);
    if (generation !== undefined && before.metadata.generation !== generation)
      throw new UserError(
        `Function ${name} was changed by another client at the same time; nothing was rolled back`,
        `look at \`spry history ${name}\`, and try again`,
      );
    generation = before.metadata.generation;
    const target = targetOf(before, await findHistory(client, before), to);
    try {
      const patch = {
        spec: mergePatchBetween(before.spec, restoredSpec(before.spec, target.data)),
        metadata: {
          resourceVersion: before.metadata.resourceVersion,
          // It is part of the build key: with another value there would be a build.
          annotations: { [annotations.rebuild]: target.data.rebuild ?? null },
        },
      };
      const stored = await client.patch(functions, { namespace, name }, patch, {
        fieldManager: "spry-cli",
      });
      return { stored, target, before };
    } catch (error) {
      if (!isConflict(error) || attempt >= maxAttempts) throw error;
    }
  }
}

/**
 * The revision to return to: the one that is named, or the newest that has served and differs from what the Function
 * specifies now. Where none is known to have served, the newest that differs.
 */
export function targetOf(
  fn: Function,
  history: readonly FunctionRevision[],
  to: number | undefined,
): FunctionRevision {
  const { name = "" } = fn.metadata;
  const list = `\`spry history ${name}\` lists them`;
  const isPresent = ({ data }: FunctionRevision) =>
    isSameVersion(data, { spec: defaultFunction(fn).spec, ...commitOf(fn) }) &&
    (data.rebuild ?? "") === (fn.metadata.annotations?.[annotations.rebuild] ?? "");
  if (to === undefined) {
    const others = history.filter((revision) => !isPresent(revision));
    const earlier = others.find(hasServed) ?? others[0];
    if (earlier) return earlier;
    throw new UserError(`Function ${name} has no version that differs from its present one`, list);
  }
  const named = history.find(({ revision }) => revision === to);
  if (!named) {
    const numbers = history.map(({ revision }) => revision).join(", ");
    throw new UserError(`Function ${name} has no version ${to}; it has ${numbers}`, list);
  }
  if (isPresent(named))
    throw new UserError(`Function ${name} already has the content of version ${to}`, list);
  return named;
}

/** The commit that is deployed for the reference, if that is the one that the Function has now. */
function commitOf({ spec, status }: Function): { commit?: string } {
  const { gitRepository: desired } = spec.source;
  const known = status?.gitRepository;
  const isSame = known?.url === desired?.url && known?.reference === desired?.reference;
  return desired && known && isSame ? { commit: known.commit } : {};
}

/** Consequences of a rollback that users may not expect. */
export function notesOn(before: Function, after: Function): string[] {
  const reference = before.spec.source.gitRepository?.reference;
  const pinned = after.spec.source.gitRepository?.reference;
  const shares = after.spec.traffic ?? [];
  const latest = shares
    .filter((share) => share.latest)
    .reduce((sum, { percent = 0 }) => sum + percent, 0);
  return [
    ...(pinned !== undefined && pinned !== reference
      ? [
          `source.gitRepository.reference is now the commit ${pinned}` +
            (reference === undefined ? "" : `, and was ${reference}`) +
            "; new commits are not followed until it names a branch again",
        ]
      : []),
    ...gitOpsNote(after),
    ...(shares.length > 0 && latest < 100
      ? [
          `spec.traffic gives the new version ${latest} % of the requests; \`spry traffic\` changes that`,
        ]
      : []),
  ];
}

/** A tool that applies manifests from Git would apply the newer one again. */
function gitOpsNote({ metadata }: Function): string[] {
  const { labels = {}, annotations: marks = {} } = metadata;
  const flux = labels["kustomize.toolkit.fluxcd.io/name"] ?? labels["helm.toolkit.fluxcd.io/name"];
  const tool =
    flux !== undefined
      ? `Flux (${flux})`
      : marks["argocd.argoproj.io/tracking-id"] !== undefined ||
          labels["argocd.argoproj.io/instance"] !== undefined
        ? "Argo CD"
        : undefined;
  return tool === undefined
    ? []
    : [`${tool} manages this Function and will apply its manifest again: change it there, too`];
}
