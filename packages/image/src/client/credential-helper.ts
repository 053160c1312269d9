import { execFile } from "node:child_process";
import { type Credentials } from "./authorization.ts";

const answerLimit = 64 * 1024;
const timeoutMs = 10_000;

/**
 * Asks `docker-credential-<name> get`, which must be on the PATH, for one registry; undefined when the helper
 * knows nothing of it. The protocol is Docker's: the registry on standard input, JSON on standard output, and a
 * message there too when it fails.
 */
export async function askCredentialHelper(
  name: string,
  registry: string,
): Promise<Credentials | undefined> {
  const what = `asking docker-credential-${name} about ${registry}`;
  // It becomes a program's name.
  if (!/^[\w.-]{1,64}$/.test(name))
    throw new Error("a credential helper's name has letters, digits, . _ -");
  const { failure, output } = await run(`docker-credential-${name}`, registry);
  if (failure) {
    if (/credentials not found/i.test(output)) return undefined;
    if (failure.code === "ENOENT")
      throw new Error(`${what}: the program was not found on the PATH`);
    throw new Error(
      `${what}: ${failure.killed ? "no answer in time" : output.slice(0, 200).trim()}`,
    );
  }
  try {
    const { Username, Secret } = JSON.parse(output) as { Username?: string; Secret?: string };
    // By this name helpers hand out identity tokens.
    if (Username === "<token>" && Secret) return { identityToken: Secret };
    if (Username !== undefined && Secret !== undefined)
      return { username: Username, password: Secret };
  } catch {
    // Said below; the parser's message would quote a secret.
  }
  throw new Error(`${what}: the answer has no Username and Secret`);
}

function run(
  program: string,
  input: string,
): Promise<{ failure: (Error & { code?: unknown; killed?: boolean }) | null; output: string }> {
  return new Promise((resolve) => {
    const options = { timeout: timeoutMs, maxBuffer: answerLimit };
    const child = execFile(program, ["get"], options, (failure, stdout) =>
      resolve({ failure, output: stdout }),
    );
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}
