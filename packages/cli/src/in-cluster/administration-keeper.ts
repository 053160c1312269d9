/** What the leader does for the administration of events: its certificate, and whose the API server trusts. */
import { setTimeout as pause } from "node:timers/promises";
import { isNotFound, type KubeClient, type Logger, messageOf } from "@spry/kube";
import {
  administrationName,
  administrationService,
  apiServices,
} from "../install/administration.ts";
import { ensureWebhookCertificate } from "./webhook-certificate.ts";

const lookAgainMs = 60_000;
const retryMs = 2_000;

/** Works until the signal is aborted. An APIService that is gone, or another's, stays as it is: events are served without it. */
export async function keepAdministration(options: {
  client: KubeClient;
  namespace: string;
  log: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { client, namespace, log, signal } = options;
  const name = administrationService;
  let trusted = "";
  while (!signal.aborted) {
    let again = lookAgainMs;
    try {
      const announce = (ca: string) => trust(client, namespace, ca);
      const { ca } = await ensureWebhookCertificate({
        client,
        namespace,
        name,
        log,
        trusted,
        announce,
      });
      trusted = ca;
      await trust(client, namespace, ca);
    } catch (error) {
      log.warn(
        { error: messageOf(error) },
        "keeping the administration's certificate, trying again",
      );
      again = retryMs;
    }
    await pause(again, undefined, { signal }).catch(() => {});
  }
}

async function trust(client: KubeClient, namespace: string, authorities: string): Promise<void> {
  const caBundle = Buffer.from(authorities).toString("base64");
  try {
    const { spec } = await client.get(apiServices, { name: administrationName });
    const { name, namespace: where } = spec?.service ?? {};
    const isOurs = name === administrationService && where === namespace;
    if (!isOurs || spec?.caBundle === caBundle) return;
    await client.patch(apiServices, { name: administrationName }, { spec: { caBundle } });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
