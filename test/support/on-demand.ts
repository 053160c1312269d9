/** Functions that start with a request, and end soon after the last one. */
import { functionManifest, type Platform } from "./platform.ts";
import { untilTrue } from "./until-true.ts";

const onDemand = {
  scaleConfig: { minReplicas: 0, maxReplicas: 3 },
  annotations: { "autoscaling.knative.dev/window": "6s" },
};

/** Resolves when it has started once. @param more fields of its spec */
export async function deployOnDemand(
  platform: Platform,
  name: string,
  source: string,
  more: object = {},
): Promise<void> {
  await platform.k("apply -f -", functionManifest(name, source, { ...onDemand, ...more }));
  await platform.k(`wait --for=condition=Running function/${name} --timeout=60s`);
}

/** Resolves when it has no Pods; rejects after a minute. */
export function untilZero(platform: Platform, name: string): Promise<void> {
  const pods = `get pods -l serving.knative.dev/service=${name} -o name`;
  return untilTrue(`${name} at zero`, async () => (await platform.k(pods)) === "", 60_000);
}
