/**
 * The source stage of a Function from Git: which commit is its source now. Lookups run outside of the
 * passes; until one has a result, and while the server is unreachable, the last known commit stays the
 * source, so that the rest of the Function does not have to wait for Git.
 */
import {
  annotations,
  deprecationOf,
  type FunctionStatus,
  type GitRepositorySource,
  names,
  runtimeOf,
} from "@spry/function";
import { isControlledBy, resources } from "@spry/kube";
import {
  assertSecretType,
  authorizationFailed,
  type CommitAnswer,
  commitIn,
  type GitCredentials,
  GitError,
  normalBaseDir,
  parseRepositoryUrl,
  readCredentials,
} from "@spry/source";
import { deleteIfThere } from "../../children.ts";
import { conditionOf, withWarnings } from "../conditions.ts";
import { type Deps, type Draft, type Outcome } from "../stage.ts";
import { checkIntervalOf } from "./check-interval.ts";

export async function resolveGitSource(draft: Draft, deps: Deps): Promise<Outcome> {
  const { fn, status } = draft;
  const git = fn.spec.source.gitRepository as GitRepositorySource;
  await dropConfigMap(draft, deps);
  const defaultMs = deps.settings.gitCheckIntervalSeconds * 1000;
  const { intervalMs, warning } = checkIntervalOf(fn, defaultMs);
  const warnings = [deprecationOf(runtimeOf(fn)), warning];
  try {
    parseRepositoryUrl(git.url);
    normalBaseDir(git.baseDir);
    const credentials = await credentialsOf(draft, deps);
    const commit = commitIn(git.reference);
    if (commit !== undefined) {
      deps.commits.forget(draft.key);
      return updated(draft, git, commit, warnings);
    }
    const question = { url: git.url, reference: git.reference, credentials };
    const interest = { intervalMs, demand: demandOf(draft) };
    const { answer, isDemanded } = deps.commits.ask(draft.key, question, interest);
    return conclude(draft, git, answer, isDemanded, warnings);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    // What is wrong is in the Function or its Secret, and a change of either brings the next pass.
    deps.commits.forget(draft.key);
    const isSpec = error.failure === "unrecoverable";
    return failed(draft, error, isSpec ? undefined : knownCommit(status, git));
  }
}

function conclude(
  draft: Draft,
  git: GitRepositorySource,
  answer: CommitAnswer | undefined,
  isDemanded: boolean,
  warnings: readonly (string | undefined)[],
): Outcome {
  const known = knownCommit(draft.status, git);
  if (answer && "commit" in answer) return updated(draft, git, answer.commit, warnings);
  if (answer) return failed(draft, answer.error, known);
  if (known === undefined || isDemanded) {
    const message = `resolving reference ${git.reference} on the Git server`;
    return { kind: "wait", reason: "SourceResolving", message };
  }
  // After a restart, or with other credentials: what was said last stays said.
  const before = conditionOf(draft.status, "ConfigurationReady");
  if (before?.reason !== "SourceUpdateFailed") return updated(draft, git, known, warnings);
  remember(draft, git, known);
  return { kind: "done", reason: before.reason, message: before.message };
}

function updated(
  draft: Draft,
  git: GitRepositorySource,
  commit: string,
  warnings: readonly (string | undefined)[],
): Outcome {
  remember(draft, git, commit);
  const message = withWarnings(`Sources ${draft.name} updated`, warnings);
  return { kind: "done", reason: "SourceUpdated", message };
}

/** Reports the failure; if a commit is known, the pass continues with it. */
function failed(draft: Draft, error: GitError, known: string | undefined): Outcome {
  const reason = "SourceUpdateFailed";
  const message = messageOf(error);
  if (known !== undefined) {
    draft.commit = known;
    return { kind: "done", reason, message };
  }
  const kind = error.failure === "unrecoverable" ? "stop" : "wait";
  return { kind, reason, message };
}

/** The contract's message for each kind of failure (docs/compatibility.md#git). */
function messageOf({ failure, message }: GitError): string {
  if (failure === "authorization") return authorizationFailed;
  if (failure === "unrecoverable") return `Stop reconciliation, reason: ${message}`;
  return `Sources update failed, reason: ${message}`;
}

function remember(draft: Draft, git: GitRepositorySource, commit: string): void {
  const { url, reference, baseDir } = git;
  draft.commit = commit;
  Object.assign(draft.status, { commit, reference, baseDir });
  draft.status.gitRepository = { url, reference, baseDir, commit };
}

/** The commit that this reference of this repository was, when it was last asked for. */
function knownCommit(
  { gitRepository }: FunctionStatus,
  { url, reference }: GitRepositorySource,
): string | undefined {
  const isSame = gitRepository?.url === url && gitRepository.reference === reference;
  return isSame ? gitRepository.commit : undefined;
}

/** For a Function whose source is not from Git any more. */
export function forgetGitSource(status: FunctionStatus): void {
  delete status.commit;
  delete status.reference;
  delete status.baseDir;
  delete status.gitRepository;
}

/** What a user writes to have the server queried at once. */
function demandOf({ fn }: Draft): string {
  const { [annotations.gitCheck]: check = "", [annotations.rebuild]: rebuild = "" } =
    fn.metadata.annotations ?? {};
  return JSON.stringify([check, rebuild]);
}

async function credentialsOf(draft: Draft, deps: Deps): Promise<GitCredentials | undefined> {
  const { auth } = draft.fn.spec.source.gitRepository ?? {};
  if (!auth) return undefined;
  const secret = await deps.references.gitSecret(draft.key, draft.fn);
  if (!secret) {
    const message = `Secret ${auth.secretName} not found in namespace ${draft.namespace}`;
    throw new GitError("temporary", message);
  }
  assertSecretType(auth.secretName, secret.type ?? "Opaque", auth.type);
  return readCredentials(auth.type, (key) => {
    const encoded = secret.data?.[key];
    return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString();
  });
}

/** Deletes the ConfigMap of the time when the source was inline. */
export async function dropConfigMap({ namespace, name, fn }: Draft, { client, caches }: Deps) {
  const configMap = caches.configMaps.get(`${namespace}/${names.configMap(name)}`);
  if (configMap && isControlledBy(configMap, fn)) {
    await deleteIfThere(client, resources.configMaps, configMap);
  }
}
