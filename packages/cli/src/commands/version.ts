import { connect, type GlobalOptions } from "../connection.ts";
import { UserError } from "../user-error.ts";
import { version } from "../version.ts";

const lookMs = 2000;

/** Prints this command's version and, where one can be reached, the cluster's. */
export async function printVersion(options: GlobalOptions & { output?: string }): Promise<void> {
  const server = await serverVersion(options);
  const node = process.versions.node;
  if (options.output === "json")
    return console.log(JSON.stringify({ version, node, server: server ?? null }));
  if (options.output)
    throw new UserError(`${options.output} is not an output format`, "use -o json");
  console.log(`spry    ${version}`);
  console.log(`node    ${node}`);
  console.log(`server  ${server ?? "none reachable"}`);
}

async function serverVersion(options: GlobalOptions): Promise<string | undefined> {
  try {
    const { client } = await connect(options);
    const response = await client.raw("GET", "/version", { signal: AbortSignal.timeout(lookMs) });
    const { gitVersion } = (await response.json()) as { gitVersion?: string };
    return gitVersion;
  } catch (error) {
    if (options.kubeconfig) throw error;
    return undefined;
  }
}
