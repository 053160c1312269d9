/** Problems of this machine, and of the kubeconfig's cluster, that affect a platform or its Functions. */
import { lookup } from "node:dns/promises";
import { statfsSync } from "node:fs";
import { createServer } from "node:net";
import { runtimes } from "@spry/function";
import { findPython } from "@spry/machine";
import { connect, type GlobalOptions } from "../../connection.ts";
import { messageOf } from "@spry/kube";
import { sizeText } from "../../size-text.ts";
import { type Finding } from "./finding.ts";

const usualPorts = { API: 6443, gateway: 8080, registry: 5000 };
const enoughBytes = 2e9;
const lookMs = 3000;

/** Problems here are hints: each names what does not work because of it. `isUsed`: a platform is running, and has the ports. */
export async function* checkMachine(
  directory: string,
  isUsed: boolean,
  options: GlobalOptions,
): AsyncGenerator<Finding> {
  yield { what: `Node.js ${process.versions.node} on ${process.platform}-${process.arch}` };
  if (!isUsed) yield* ports(await portsOfPlatform(options));
  yield await resolution();
  for (const { name, language, interpreter } of runtimes) {
    if (language !== "python") continue;
    const version = interpreter.replace("python@", "");
    const found = await findPython(version);
    yield found
      ? { what: `Python ${version}: ${found.executable}` }
      : {
          what: `Python ${version} is not on this machine`,
          isNote: true,
          wayOut: `only Functions with the runtime ${name} need it: install it, or Go, which fetches it`,
        };
  }
  const { bavail, bsize } = statfsSync(directory);
  const free = bavail * bsize;
  yield free >= enoughBytes
    ? { what: `${sizeText(free)} of disk space are free` }
    : { what: "disk space", problem: `only ${sizeText(free)} are free` };
  yield await cluster(options);
}

/** `taken`: by the platform that commands talk to, whose data directory is another one. */
async function* ports(taken: ReadonlySet<number>): AsyncGenerator<Finding> {
  for (const [name, port] of Object.entries(usualPorts)) {
    if (await isFree(port)) yield { what: `port ${port} (${name}) is free` };
    else if (taken.has(port))
      yield {
        what: `port ${port} (${name}) is used by the platform of the kubeconfig`,
        isNote: true,
      };
    else
      yield {
        what: `port ${port} (${name})`,
        problem: "another program listens on it",
        wayOut: `stop it, or start the platform with another port`,
      };
  }
}

async function portsOfPlatform(options: GlobalOptions): Promise<Set<number>> {
  try {
    const { cluster: config, gateway, registry } = await connect(options);
    const urls = [new URL(config.server), gateway, registry];
    return new Set(urls.flatMap((url) => (url ? Number(url.port) : [])));
  } catch {
    // Without a kubeconfig there is none.
    return new Set();
  }
}

async function resolution(): Promise<Finding> {
  const name = "hello.default.localhost";
  try {
    const { address } = await lookup(name);
    return { what: `${name} resolves to ${address}` };
  } catch {
    return {
      what: `${name} does not resolve for all programs`,
      isNote: true,
      wayOut:
        "browsers and curl do it themselves; for others use http://localhost:8080/fn/NAMESPACE/FUNCTION/",
    };
  }
}

async function cluster(options: GlobalOptions): Promise<Finding> {
  try {
    const { client, namespace } = await connect(options);
    const attributes = {
      namespace,
      verb: "patch",
      group: "serverless.kyma-project.io",
      resource: "functions",
    };
    const response = await client.raw(
      "POST",
      "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
      {
        body: {
          apiVersion: "authorization.k8s.io/v1",
          kind: "SelfSubjectAccessReview",
          spec: { resourceAttributes: attributes },
        },
        signal: AbortSignal.timeout(lookMs),
      },
    );
    const { status } = (await response.json()) as { status?: { allowed?: boolean } };
    if (status?.allowed) return { what: `you may deploy to namespace ${namespace}` };
    return {
      what: `deploying to namespace ${namespace}`,
      problem: "you do not have the permission",
      wayOut: "ask for the right to patch functions.serverless.kyma-project.io",
    };
  } catch (error) {
    const [reason] = messageOf(error).split("\n");
    return { what: `cluster: not available (${reason})`, isNote: true };
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
