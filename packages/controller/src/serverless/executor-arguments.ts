/** Reads the list `functionBuildExecutorArgs` (docs/compatibility.md#executor-arguments). */

export interface ExecutorArguments {
  /** Registries (`host:port`) that builders speak to without TLS. */
  plainRegistries: string[];
  /** Arguments that are known, and mean nothing to this builder. */
  withoutEffect: string[];
}

const plainRegistry = /^--(?:insecure-registry|plain-registry)=(?<host>[a-z0-9.-]+(?::\d{1,5})?)$/;

/**
 * They steer how an image is made by running a Dockerfile as root; here layers are appended, the cache is keyed by
 * what determines it, and certificates are always checked.
 */
const ofDockerfiles = new Set([
  "--insecure",
  "--skip-tls-verify",
  "--skip-unused-stages",
  "--log-format",
  "--log-timestamp",
  "--verbosity",
  "--cache",
  "--compressed-caching",
  "--use-new-run",
  "--single-snapshot",
  "--snapshot-mode",
  "--cleanup",
  "--force",
  "--reproducible",
  "--push-retry",
  "--image-fs-extract-retry",
]);

const maxArguments = 64;

/** An unknown argument is an `error`: silently ignoring it would surprise the operator. */
export function readExecutorArguments(text: string): ExecutorArguments | { error: string } {
  const all = text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "");
  if (all.length > maxArguments) return { error: `more than ${maxArguments} arguments` };
  const result: ExecutorArguments = { plainRegistries: [], withoutEffect: [] };
  for (const argument of all) {
    const host = plainRegistry.exec(argument)?.groups?.["host"];
    if (host) result.plainRegistries.push(host);
    else if (ofDockerfiles.has(argument.replace(/=.*$/, ""))) result.withoutEffect.push(argument);
    else {
      const supported = "the builder supports --insecure-registry=HOST:PORT";
      return { error: `unknown argument ${JSON.stringify(argument)}; ${supported}` };
    }
  }
  return result;
}
