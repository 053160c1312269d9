/** The settings of request-driven scaling for tests, on either engine. */
import { settingsNamespace } from "@spry/serving";

/**
 * For `kubectl apply`: without the time that Knative's scaler otherwise waits in addition to the window. A cluster has the
 * namespace only when an administrator wants other settings than the defaults.
 */
export const impatientServing = JSON.stringify({
  apiVersion: "v1",
  kind: "List",
  items: [
    { apiVersion: "v1", kind: "Namespace", metadata: { name: settingsNamespace } },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "config-autoscaler", namespace: settingsNamespace },
      data: { "scale-to-zero-grace-period": "0s" },
    },
  ],
});
