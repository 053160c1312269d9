/** What the leader does with NATS servers that the Serverless object names: their credentials reach the programs that use them, which start again. */
import { createHmac } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import {
  type NatsSpec,
  type Remarks,
  servedOf,
  type Serverless,
  serverlesses,
} from "@spry/controller";
import {
  Informer,
  isNotFound,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
} from "@spry/kube";
import { eventingName } from "../install/eventing-objects.ts";
import { gatewayName } from "../install/names.ts";
import { eventingSecretName, externalKeys, natsTokenKey } from "./eventing-token.ts";
import { plainProblem, plainServer } from "./nats-plaintext.ts";

const lookAgainMs = 30_000;
const retryMs = 2_000;
/** Of Pods; another value is another Pod. */
const annotation = "eventing.spry.io/nats";

type Data = Partial<Record<keyof typeof externalKeys, string>>;

/** Works until the signal is aborted. Credentials that change in the Secret are noticed within half a minute. */
export async function keepNatsServers(options: {
  client: KubeClient;
  namespace: string;
  remarks: Remarks;
  log: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { client, namespace, remarks, log, signal } = options;
  const cache = new Informer(client, serverlesses, { log, mayBeMissing: true });
  let changed = () => {};
  cache.onChange(() => changed());
  const watching = cache.run(signal);
  await Promise.race([cache.synced, watching]);
  while (!signal.aborted) {
    const change = new Promise<void>((resolve) => (changed = resolve));
    let again = lookAgainMs;
    try {
      const found = await wanted(client, namespace, [...cache.list()]);
      remarks.set("nats", found && "problem" in found ? found.problem : undefined);
      if (found && "data" in found) await use(client, namespace, found.data);
      else if (found?.isPlain) await forbidPlaintext(client, namespace);
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        "using the NATS servers of the Serverless object failed, trying again",
      );
      again = retryMs;
    }
    const timer = pause(again, undefined, { signal, ref: false }).catch(() => {});
    await Promise.race([change, timer]);
  }
  await watching;
}

/** Undefined: nothing is to be changed, since the object cannot be used, or has not been looked at yet. Without an object, the installation's own. */
async function wanted(
  client: KubeClient,
  namespace: string,
  all: Serverless[],
): Promise<{ data: Data } | { problem: string; isPlain?: boolean } | undefined> {
  const inEffect = servedOf(all, namespace);
  if (!inEffect) return { data: {} };
  if (inEffect.status?.served !== "True") return undefined;
  const configured = inEffect.status?.conditions?.find(({ type }) => type === "Configured");
  if (configured?.status === "False") return undefined;
  const nats = inEffect.spec?.eventing?.nats;
  if (!nats) return { data: {} };
  const { secretName } = nats;
  if (!secretName) return { data: dataOf(nats, {}) };
  const secret = await client
    .get(resources.secrets, { namespace, name: secretName })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const where = `spec.eventing.nats.secretName: Secret ${namespace}/${secretName}`;
  if (!secret) return { problem: `${where} does not exist` };
  const text = (key: string) =>
    Buffer.from(secret.data?.[key] ?? "", "base64")
      .toString()
      .trim();
  const known = {
    token: text("token"),
    username: text("username"),
    password: text("password"),
    authority: text("ca.crt"),
  };
  if (known.token === "" && (known.username === "" || known.password === ""))
    return { problem: `${where} has neither token, nor username and password` };
  const plain = nats.allowPlaintext ? undefined : plainServer(nats.servers, known.authority);
  if (plain === undefined) return { data: dataOf(nats, known) };
  return { problem: `spec.eventing.nats.servers: ${plainProblem(plain)}`, isPlain: true };
}

function dataOf({ servers, replicas = 1, allowPlaintext }: NatsSpec, credentials: Data): Data {
  const plaintext = allowPlaintext ? "true" : "";
  const all = { servers: servers.join(","), replicas: String(replicas), plaintext, ...credentials };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ""));
}

async function use(client: KubeClient, namespace: string, desired: Data): Promise<void> {
  const target = { namespace, name: eventingSecretName };
  const { data: present = {} } = await client.get(resources.secrets, target);
  const changes: Record<string, string | null> = {};
  for (const [name, key] of Object.entries(externalKeys)) {
    const value = desired[name as keyof Data];
    const encoded = value === undefined ? undefined : Buffer.from(value).toString("base64");
    if (present[key] !== encoded) changes[key] = encoded ?? null;
  }
  if (Object.keys(changes).length > 0)
    await client.patch(resources.secrets, target, { data: changes });
  const value = markOf(desired, present[natsTokenKey]);
  for (const name of [eventingName, gatewayName]) await restart(client, { namespace, name }, value);
}

/** What is in use stays, but for the permission to send credentials without TLS, which the object has no longer. */
async function forbidPlaintext(client: KubeClient, namespace: string): Promise<void> {
  const { data = {} } = await client.get(resources.secrets, {
    namespace,
    name: eventingSecretName,
  });
  const present: Data = {};
  for (const [name, key] of Object.entries(externalKeys)) {
    const value = data[key];
    if (value !== undefined && key !== externalKeys.plaintext)
      present[name as keyof Data] = Buffer.from(value, "base64").toString();
  }
  await use(client, namespace, present);
}

/**
 * Another one for other servers or credentials; null for the installation's own servers. With a key that only readers of the Secret
 * have: passwords cannot be guessed from an annotation.
 */
function markOf(desired: Data, key: string | undefined): string | null {
  const fields = Object.keys(desired).toSorted();
  if (fields.length === 0) return null;
  if (!key)
    throw new Error(
      `Secret ${eventingSecretName} has no ${natsTokenKey}: the controller makes one when it starts again`,
    );
  return createHmac("sha256", key).update(JSON.stringify(desired, fields)).digest("hex");
}

/** With another value of the annotation, the Pods are replaced one by one. */
async function restart(
  client: KubeClient,
  target: { namespace: string; name: string },
  value: string | null,
): Promise<void> {
  const found = await client.get(resources.deployments, target).catch((error: unknown) => {
    if (isNotFound(error)) return undefined;
    throw error;
  });
  const present = found?.spec?.template.metadata?.annotations;
  if (!found || (present?.[annotation] ?? null) === value) return;
  const metadata = { annotations: { [annotation]: value } };
  await client.patch(resources.deployments, target, { spec: { template: { metadata } } });
}
