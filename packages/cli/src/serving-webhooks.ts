/** The webhooks of Knative Serving: part of the same server as those of Functions, as long as no other installation serves them. */
import { type WebhookLocation, webhookClientConfig } from "@spry/controller";
import {
  isNotFound,
  type KubeClient,
  type KubeObject,
  type Logger,
  type Resource,
  resources,
  systemClock,
} from "@spry/kube";
import {
  createServingAdmission,
  dryRunPods,
  installServing,
  servingAdmissionConfigurations,
  servingWebhookNames,
  servingWebhookPath,
  SettingsWatch,
} from "@spry/serving";

export interface ServingWebhooks {
  /** Undefined for a request that is none of theirs. */
  answers(request: Request): Promise<Response> | undefined;
}

/**
 * Answers by the ConfigMaps as they are then, which are followed until the signal is aborted. `trying` is asked, without
 * creating anything, whether it would take Pods.
 */
export function createServingWebhooks(
  client: KubeClient,
  log: Logger,
  signal: AbortSignal,
  trying: KubeClient = client,
): ServingWebhooks {
  const settings = new SettingsWatch(client, systemClock, log);
  void settings.run(signal);
  const admission = createServingAdmission(() => settings.current, dryRunPods(trying));
  return {
    answers: (request) =>
      new URL(request.url).pathname.startsWith(servingWebhookPath)
        ? admission.fetch(request)
        : undefined,
  };
}

/**
 * Registers them at the API server once the definitions exist. Where Knative Serving is another installation's, its
 * own webhooks are called, and ours are emptied. On a cluster the objects are part of the installation: the
 * controller may not create any.
 */
export async function configureServingWebhooks(
  client: KubeClient,
  location: WebhookLocation,
): Promise<void> {
  const { mutatingWebhookConfigurations, validatingWebhookConfigurations } = resources;
  if ((await installServing(client)) === "ours") {
    const [mutating, validating] = servingAdmissionConfigurations((path) =>
      webhookClientConfig(location, path),
    );
    await client.apply(mutatingWebhookConfigurations, mutating);
    await client.apply(validatingWebhookConfigurations, validating);
    return;
  }
  const { mutating, validating } = servingWebhookNames;
  await empty(client, mutatingWebhookConfigurations, mutating);
  await empty(client, validatingWebhookConfigurations, validating);
}

async function empty<T extends KubeObject>(
  client: KubeClient,
  resource: Resource<T>,
  name: string,
): Promise<void> {
  try {
    await client.patch(resource, { name }, { webhooks: null });
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
