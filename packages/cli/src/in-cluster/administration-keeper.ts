/**
 * What the leader does for the administration of events: its certificate, whose the API server trusts, and who answers. While no Pod of
 * its program does, that is the controller: an API that is not available holds up the deletion of all namespaces.
 */
import {
  type Clock,
  isNotFound,
  type KubeClient,
  type Logger,
  messageOf,
  resources,
  sleep,
  systemClock,
} from "@spry/kube";
import {
  administrationName,
  administrationService,
  type ApiService,
  apiServices,
} from "../install/administration.ts";
import { ensureWebhookCertificate, webhookServiceName } from "./webhook-certificate.ts";

const lookAgainMs = 10_000;
const retryMs = 2_000;
/** Longer than a Pod takes to start again. */
const patienceMs = 20_000;

/** Works until the signal is aborted. An APIService that is gone, or another's, stays as it is: events are served without it. */
export async function keepAdministration(options: {
  client: KubeClient;
  namespace: string;
  log: Logger;
  signal: AbortSignal;
  clock?: Clock;
}): Promise<void> {
  const { client, namespace, log, signal, clock = systemClock } = options;
  const name = administrationService;
  let trusted = "";
  while (!signal.aborted) {
    let again = lookAgainMs;
    try {
      const announce = (authorities: string) => follow({ ...options, clock, authorities });
      const issuing = { client, namespace, name, log, clock, trusted, announce };
      trusted = (await ensureWebhookCertificate(issuing)).ca;
      await announce(trusted);
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        "updating the administration's certificate failed, trying again",
      );
      again = retryMs;
    }
    await sleep(clock, again, signal);
  }
}

/** Has the API server ask who can answer, and trust its authorities. */
async function follow(options: {
  client: KubeClient;
  namespace: string;
  log: Logger;
  clock: Clock;
  /** Of the program's certificate, PEM. */
  authorities: string;
}): Promise<void> {
  const { client, namespace, log, clock, authorities } = options;
  const present = await client
    .get(apiServices, { name: administrationName })
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw error;
    });
  const { name = "", namespace: where } = present?.spec?.service ?? {};
  const isOurs = [administrationService, webhookServiceName].includes(name) && where === namespace;
  if (!present || !isOurs) return;
  const isStoodInFor = name === webhookServiceName;
  const mustBe = isStoodInFor
    ? !(await hasProgram(client, namespace))
    : isSilent(present, clock) && !(await hasProgram(client, namespace));
  const bundle = mustBe
    ? (await ensureWebhookCertificate({ client, namespace, log })).ca
    : authorities;
  const caBundle = Buffer.from(bundle).toString("base64");
  if (mustBe === isStoodInFor && present.spec?.caBundle === caBundle) return;
  const service = { name: mustBe ? webhookServiceName : administrationService };
  await client.patch(apiServices, { name: administrationName }, { spec: { service, caBundle } });
  if (mustBe !== isStoodInFor)
    log.warn(
      { service: service.name },
      mustBe
        ? "no Pod serves the administration of events: the controller responds in its place"
        : "the administration of events is served by its own Pods again",
    );
}

/** Whether the API server has not reached it for some time. */
function isSilent({ status }: ApiService, clock: Clock): boolean {
  const available = status?.conditions?.find(({ type }) => type === "Available");
  const since = Date.parse(available?.lastTransitionTime ?? "");
  return available?.status === "False" && clock.now() - since >= patienceMs;
}

/** Whether a Pod of it is ready: its Service also names those that are not. */
async function hasProgram(client: KubeClient, namespace: string): Promise<boolean> {
  const labelSelector = `kubernetes.io/service-name=${administrationService}`;
  const { items } = await client.list(resources.endpointSlices, { namespace, labelSelector });
  return items.some(({ endpoints }) => endpoints?.some(({ conditions }) => conditions?.serving));
}
