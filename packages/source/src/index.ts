/** Sources in Git: what a reference is, and the files of a commit. */
export { type CommitQuestion, commitIn, resolveCommit } from "./resolve-commit.ts";
/** What Git servers report about references, kept up to date in the background. */
export { type CommitAnswer, CommitLookups, type Interest } from "./commit-lookups.ts";
export { fetchSource, type FetchRequest, normalBaseDir } from "./fetch-source.ts";
export { authorizationFailed, GitError } from "./git-error.ts";
export { allowedAddressProblem, type ServiceLookup } from "./git-server.ts";
/** Whether an address is what no tenant's name may lead to. */
export { removeAbandonedSessions } from "./git-session.ts";
export { parseRepositoryUrl, type RepositoryUrl } from "./repository-url.ts";
export {
  assertSecretType,
  type AuthType,
  type GitCredentials,
  readCredentials,
} from "./credentials.ts";
/** The same for sources on this machine: what a folder depends on around it. */
export { copyMonorepo } from "./monorepo/folder-tree.ts";
/** The program that fetches in a build's Pod. */
export { sourceFetcherEntry } from "./fetcher-entry.ts";
