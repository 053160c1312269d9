/** What a failure of Git means for whoever has to put it right. */
export type GitFailure =
  /** The server wants other credentials, or any. */
  | "authorization"
  /** There is no such branch, tag or commit, or the Function names something impossible. */
  | "unrecoverable"
  /** The server refuses this way of asking; there may be another. */
  | "refused"
  /** Everything else: the next try may do better. */
  | "temporary";

export class GitError extends Error {
  override readonly name = "GitError";
  readonly failure: GitFailure;

  constructor(failure: GitFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.failure = failure;
  }
}

/** The contract's message (docs/compatibility.md#git). */
export const authorizationFailed = "Authorization to git server failed";

const authorization = anyOf(
  /Authentication failed/,
  /could not read (?:Username|Password)/,
  /Permission denied \(/,
  /(?:returned error:|HTTP) 40[13]\b/,
  /Load key .*: /,
  /[Ii]nvalid (?:credentials|username or password)/,
);
const hostKey = anyOf(/Host key verification failed/, /REMOTE HOST IDENTIFICATION HAS CHANGED/);
const outOfMemory = /[Oo]ut of memory|Cannot allocate memory|unable to create thread/;
/** What a server says that sends any commit it has. */
const absent = /not our ref ([0-9a-f]{40,64})/;
const refusal = anyOf(
  /unadvertised object/,
  /does not (?:support|allow)/,
  /did not send all necessary objects/,
  /couldn't find remote ref|no such remote ref/,
  /expected 'packfile'/,
  /shallow/,
  /missing (?:blob|tree|object)|could not fetch/,
  /upload-pack: /,
);

function anyOf(...patterns: RegExp[]): RegExp {
  return new RegExp(patterns.map(({ source }) => source).join("|"));
}

/** Reads what Git wrote to stderr, which is English because its environment says so. */
export function readFailure(stderr: string): { failure: GitFailure; message: string } {
  if (hostKey.test(stderr)) {
    const message =
      "the git server's host key is not among the known_hosts of the Secret: " +
      "make sure that it is the right server, then add its key there";
    return { failure: "temporary", message };
  }
  if (authorization.test(stderr)) return { failure: "authorization", message: authorizationFailed };
  if (outOfMemory.test(stderr)) {
    const message =
      "the git server sends more than can be taken: it has too many references or files";
    return { failure: "temporary", message };
  }
  const missing = absent.exec(stderr)?.[1];
  if (missing) {
    const message = `commit ${missing} is not in the repository`;
    return { failure: "unrecoverable", message };
  }
  const message = meaningfulLines(stderr) || "git gave no reason";
  return { failure: refusal.test(stderr) ? "refused" : "temporary", message };
}

const shownLines = 3;
const shownLength = 300;

/** The lines that name a cause, last ones first to be kept; what others wrote is made harmless. */
function meaningfulLines(stderr: string): string {
  const lines = stderr
    .replaceAll("\r", "\n")
    .split("\n")
    // oxlint-disable-next-line no-control-regex -- exactly those are not to reach a terminal
    .map((line) => line.replace(/[\u0000-\u001f\u007f-\u009f]/g, " ").trim())
    .filter((line) => /^(?:fatal|error|remote|ssh|kex_exchange|git@)\b|^ssh: /.test(line))
    .map((line) => line.replace(/^(?:fatal|error): /, ""))
    .filter(
      (line) => !/^Please make sure you have the correct access|^and the repository/.test(line),
    );
  return [...new Set(lines)].slice(0, shownLines).join("; ").slice(0, shownLength);
}
