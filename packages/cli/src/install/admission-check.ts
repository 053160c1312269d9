import { type Function, functions } from "@spry/function";
import { type KubeClient, messageOf, StatusError } from "@spry/kube";

/** Below its bound: only the webhook that completes Functions moves `replicas` up to it. */
const minReplicas = 2;

/**
 * Whether a Function that somebody applies now gets an answer. A Pod of the controller that is ready is not there for
 * the API server at once: the EndpointSlice and kube-proxy follow within a second or two, and until then its webhooks
 * refuse the connection, and with it every Function. Asked with a dry run; nothing is stored. A text says what the API
 * server met instead: where a firewall keeps it from Pods, that is all a person has to go by.
 */
export async function functionsAreAdmitted(
  client: KubeClient,
  namespace: string,
): Promise<boolean | string> {
  const probe: Function = {
    metadata: { namespace, name: "spry-install-probe" },
    spec: {
      runtime: "nodejs24",
      source: { inline: { source: "module.exports = { main() {} };" } },
      replicas: minReplicas - 1,
      scaleConfig: { minReplicas, maxReplicas: minReplicas },
    },
  };
  try {
    const { spec } = await client.create(functions, probe, { dryRun: true });
    return spec.replicas === minReplicas;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    // Whoever refuses this Function, a policy or a quota of the cluster: the webhooks are not what is missing.
    return error.code < 500 && error.code !== 429 ? true : messageOf(error);
  }
}
