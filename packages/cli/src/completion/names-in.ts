import { type Position } from "./position.ts";

/** A longer list does not help to find a name. */
const maxNames = 500;
const metadataOnly =
  "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";

/** From the start of the process on: a later answer would only delay the typing. */
const patienceMs = 500;
/** Where the machine is so busy that the start alone takes that long. */
const leastMs = 150;

/**
 * Names of Functions of the namespace, or of all namespaces, in the cluster that the command would talk to; none of a cluster that
 * does not answer soon.
 */
export async function namesIn(
  what: "functions" | "namespaces",
  options: Position["options"],
): Promise<string[]> {
  const { promise: late, resolve } = Promise.withResolvers<string[]>();
  setTimeout(() => resolve([]), Math.max(leastMs, patienceMs - performance.now()));
  return Promise.race([askFor(what, options), late]);
}

async function askFor(
  what: "functions" | "namespaces",
  options: Position["options"],
): Promise<string[]> {
  const { connect } = await import("../connection.ts");
  const { client, namespace } = await connect(options);
  const place =
    what === "functions"
      ? `/apis/serverless.kyma-project.io/v1alpha2/namespaces/${encodeURIComponent(namespace)}/functions`
      : "/api/v1/namespaces";
  const response = await client.raw("GET", `${place}?limit=${maxNames}`, { accept: metadataOnly });
  const { items } = (await response.json()) as { items: { metadata: { name: string } }[] };
  const names = items.slice(0, maxNames).map(({ metadata }) => metadata.name);
  // Whatever the server is, a shell gets nothing but names.
  return names.filter((name) => /^[a-z0-9][a-z0-9.-]{0,252}$/.test(name));
}
