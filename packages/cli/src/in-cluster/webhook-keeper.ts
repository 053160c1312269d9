/** What the leader does for the webhooks: certificate and configuration are put right again whenever something takes them away. */
import { knative } from "@spry/function";
import { type KubeClient, Controller, Informer, type Logger, resources } from "@spry/kube";
import { ensureWebhookCertificate, webhookSecretName } from "./webhook-certificate.ts";
import { configureWebhooks, webhookNames } from "./webhook-configuration.ts";

const renewEveryMs = 3_600_000;
const key = "webhooks";

/**
 * Works until the signal is aborted. A Secret that was deleted is created again, with another authority: deleting it
 * is how an operator rotates it. A configuration that is deleted stays so until the next hour or leader, since that
 * is how an installation ends.
 */
export async function keepWebhooks(options: {
  client: KubeClient;
  namespace: string;
  /** Whether Subscriptions are served. */
  eventing: boolean;
  log: Logger;
  signal: AbortSignal;
}): Promise<void> {
  const { client, namespace, eventing, log, signal } = options;
  const named = (name: string) => ({ fieldSelector: `metadata.name=${name}`, log });
  const secrets = new Informer(client, resources.secrets, {
    namespace,
    ...named(webhookSecretName),
  });
  const names = webhookNames(namespace);
  const { mutatingWebhookConfigurations, validatingWebhookConfigurations } = resources;
  const mutating = new Informer(client, mutatingWebhookConfigurations, named(names.mutating));
  const validating = new Informer(client, validatingWebhookConfigurations, named(names.validating));
  // Whether Knative Serving is ours decides whether our webhooks are registered.
  const { plural, group } = knative.services;
  const { customResourceDefinitions } = resources;
  const serving = new Informer(client, customResourceDefinitions, named(`${plural}.${group}`));
  let trusted = "";
  const controller = new Controller({
    name: key,
    workers: 1,
    log,
    async reconcile() {
      const announce = (authorities: string) =>
        configureWebhooks(client, authorities, { namespace, eventing });
      const { ca } = await ensureWebhookCertificate({ client, namespace, log, trusted, announce });
      trusted = ca;
      await configureWebhooks(client, ca, { namespace, eventing });
      return { requeueAfterMs: renewEveryMs };
    },
  });
  controller.watch(secrets, () => [key]);
  const onChange = ({ type }: { type: string }) => {
    if (type === "updated") controller.enqueue(key);
  };
  mutating.onChange(onChange);
  validating.onChange(onChange);
  serving.onChange(({ type }) => {
    if (type !== "deleted") controller.enqueue(key);
  });
  controller.enqueue(key);
  const watching = [secrets, mutating, validating, serving].map((informer) => informer.run(signal));
  await Promise.all([controller.run(signal), ...watching]);
}
