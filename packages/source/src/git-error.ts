/** What a failure of Git means, and who can do something about it. */
export type GitFailure =
  /** The server wants other credentials, or any. */
  | "authorization"
  /** There is no such branch, tag or commit, or the Function names something impossible. */
  | "unrecoverable"
  /** The server refuses this way of asking; there may be another. */
  | "refused"
  /** The server sends us elsewhere. */
  | "redirected"
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

/** What neither another attempt mends nor leaving a part of the source out: it is too large, or is not what the commit says. */
export class SourceRefused extends GitError {
  constructor(message: string) {
    super("unrecoverable", message);
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
const redirected = /returned error: 30[12378]\b|unable to update url base from redirection/;
/** Nothing that speaks Git answers: whether the port is closed, silent or another program's is not for all to know. */
const unreachable = anyOf(
  /[Ff]ailed to connect|[Cc]ouldn't connect|SOCKS5 connection|[Cc]onnection (?:refused|reset|closed|timed out)/,
  /[Nn]o route to host|[Nn]etwork is unreachable|Operation timed out|timed out|too slow/,
  /Empty reply|Received HTTP\/0\.9|[Uu]nsupported HTTP|[Ww]eird server reply|unexpected eof/,
  /kex_exchange_identification|banner exchange|Connection to .* closed|wrong version number|packet length/,
  /Recv failure|Send failure|transfer closed|not valid: is this a git repository/,
  /gnutls_handshake|GnuTLS, handshake|SSL_connect|SSL connect error|SSL_ERROR|TLS connect error|unexpected TLS packet/,
);
/** The same for all causes, so that an open port cannot be distinguished from a closed one. */
export const unreachableServer =
  "the Git server cannot be reached, or what answers there is not a Git server: check the URL from a machine in the same network with git ls-remote";
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
      "what the git server sends exceeded the memory limit: it has too many references or files";
    return { failure: "temporary", message };
  }
  if (redirected.test(stderr))
    return { failure: "redirected", message: "the Git server redirects to another URL" };
  if (unreachable.test(stderr)) return { failure: "temporary", message: unreachableServer };
  const missing = absent.exec(stderr)?.[1];
  if (missing) {
    const message = `commit ${missing} is not in the repository`;
    return { failure: "unrecoverable", message };
  }
  const message = meaningfulLines(stderr) || "git gave no reason";
  // All that is left of a connection that ended without an error message.
  if (/^Could not read from remote repository\.?$/.test(message)) {
    return { failure: "temporary", message: unreachableServer };
  }
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
    .filter((line) => /^(?:fatal|error|ERROR|remote|ssh|kex_exchange|git@)\b|^ssh: /.test(line))
    .map((line) => line.replace(/^(?:fatal|error): /, ""))
    .filter(
      (line) => !/^Please make sure you have the correct access|^and the repository/.test(line),
    );
  return [...new Set(lines)].slice(0, shownLines).join("; ").slice(0, shownLength);
}
