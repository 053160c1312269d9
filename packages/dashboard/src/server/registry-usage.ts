import { type RegistryUsage } from "@spry/function";
import { type Transport, transportOrigin } from "@spry/kube";
import { RequestError } from "./http.ts";

/** Reads what the registry stores; undefined while that is not known. */
export type ReadRegistryUsage = () => Promise<RegistryUsage | undefined>;

/** A page asks again and again, and an answer takes a look at every image of the cluster. */
const freshMs = 10_000;

/** What the registry stores, for its users: everything for those who may list all Functions, otherwise one namespace's. */
export class RegistryUsages {
  readonly #read: ReadRegistryUsage;
  #last: { at: number; usage: Promise<RegistryUsage | undefined> } | undefined;

  constructor(read: ReadRegistryUsage) {
    this.#read = read;
  }

  async of(namespace: string | undefined, transport: Transport): Promise<RegistryUsage> {
    await assertMayList(namespace, transport);
    const usage = await this.#fresh().catch(() => undefined);
    if (!usage) throw new RequestError(503, "what the registry stores is not known yet");
    if (namespace === undefined) return usage;
    const isOwn = ({ name }: { name: string }) => name.startsWith(`${namespace}/`);
    return { ...usage, repositories: usage.repositories.filter(isOwn) };
  }

  #fresh(): Promise<RegistryUsage | undefined> {
    const now = performance.now();
    if (!this.#last || now - this.#last.at > freshMs) this.#last = { at: now, usage: this.#read() };
    return this.#last.usage;
  }
}

async function assertMayList(namespace: string | undefined, transport: Transport): Promise<void> {
  const where = namespace === undefined ? "" : `/namespaces/${namespace}`;
  const path = `/apis/serverless.kyma-project.io/v1alpha2${where}/functions?limit=1`;
  const found = await transport(new Request(transportOrigin + path));
  await found.body?.cancel();
  if (found.status === 200) return;
  const what = namespace === undefined ? "of all namespaces" : `in ${namespace}`;
  if (found.status === 401) throw new RequestError(401, "the login is not valid, or has expired");
  if (found.status === 403) throw new RequestError(403, `you may not list the Functions ${what}`);
  throw new RequestError(502, `the API server responded with ${found.status}`);
}
