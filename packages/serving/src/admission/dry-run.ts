import { type Configuration, knative, knativeLabels, type KService } from "@spry/function";
import {
  type AdmissionRequest,
  deepEqual,
  type KubeClient,
  messageOf,
  type Pod,
  resources,
} from "@spry/kube";
import { desiredDeployment } from "../reconcile/deployment.ts";
import { type Settings } from "../settings/settings.ts";

const annotation = "features.knative.dev/podspec-dryrun";

/** Undefined: the API server would take the Pod; or why it would not. */
export type TryPod = (pod: Pod) => Promise<string | undefined>;

/**
 * Asks the API server whether it would take the Pods of a template, where the annotation or `config-features` wants that
 * (knative.dev/serving/pkg/webhook). Returns why not.
 */
export async function tryTemplate(
  { kind, object, oldObject }: AdmissionRequest,
  { features, ...settings }: Settings,
  tryPod: TryPod,
): Promise<string | undefined> {
  if (kind.kind !== knative.services.kind && kind.kind !== knative.configurations.kind) return;
  const { metadata, spec } = object as KService | Configuration;
  // What belongs to a Service has been tried with it.
  if (metadata.labels?.[knativeLabels.service]) return undefined;
  const flag = features["kubernetes.podspec-dryrun"];
  const mode = metadata.annotations?.[annotation];
  const isWanted = flag === "Enabled" || mode === "enabled" || mode === "strict";
  if (flag === "Disabled" || !isWanted) return undefined;
  const before = (oldObject as KService | undefined)?.spec?.template;
  if (before && deepEqual(before, spec.template)) return undefined;
  const { namespace = "" } = metadata;
  const revision = {
    metadata: { name: "dry-run", namespace, uid: "dry-run" },
    spec: spec.template.spec,
  };
  const { template } = desiredDeployment(revision, { features, ...settings }, new Map()).spec;
  const why = await tryPod({
    metadata: { generateName: "dry-run-validation", namespace },
    ...(template.spec ? { spec: template.spec } : {}),
  });
  return why && `validation callback failed: dry run failed with ${why}: spec.template`;
}

/** Tries Pods with a dry run. Where the client may not create Pods, none is tried. */
export function dryRunPods(client: KubeClient): TryPod {
  return async (pod) => {
    try {
      await client.create(resources.pods, pod, { dryRun: true });
      return undefined;
    } catch (error) {
      const why = messageOf(error);
      // Of the client itself; what a policy forbids has other words.
      return /cannot create resource "pods"/.test(why) ? undefined : why;
    }
  };
}
