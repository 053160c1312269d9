import { type Function, functions } from "@spry/function";
import { type KubeClient, messageOf, StatusError } from "@spry/kube";

/** Below its bound: only the webhook that completes Functions moves `replicas` up to it. */
const minReplicas = 2;

/**
 * Whether a Function that is applied now gets a response. A Pod of the controller that is ready cannot be reached by
 * the API server at once: the EndpointSlice and kube-proxy follow within a second or two, and until then its webhooks
 * refuse the connection, and with it every Function. Tried with a dry run; nothing is stored. A returned string is
 * the API server's error: where a firewall keeps it from Pods, that is the only clue there is.
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
    // A policy or a quota of the cluster may refuse this Function: the webhooks respond all the same.
    return error.code < 500 && error.code !== 429 ? true : messageOf(error);
  }
}
