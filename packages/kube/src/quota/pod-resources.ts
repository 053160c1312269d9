import { type Container, type PodSpec } from "../resources.ts";
import { amountsOf, type Amounts, largestOf, sumOf } from "./resource-list.ts";

type Side = "requests" | "limits";
type SizedPodSpec = PodSpec & { resources?: Partial<Record<Side, Record<string, string>>> };

/**
 * What a Pod asks for (`k8s.io/component-helpers/resource`): its containers and sidecars together, or its
 * largest init container together with the sidecars before it, whichever is more; Pod-level amounts replace them.
 */
export function podAmounts(spec: SizedPodSpec | undefined, side: Side): Amounts {
  let total: Amounts = new Map();
  for (const container of spec?.containers ?? []) total = sumOf(total, amounts(container, side));
  let sidecars: Amounts = new Map();
  let initial: Amounts = new Map();
  for (const container of spec?.initContainers ?? []) {
    const own = amounts(container, side);
    if ((container as { restartPolicy?: string }).restartPolicy === "Always") {
      total = sumOf(total, own);
      sidecars = sumOf(sidecars, own);
      initial = largestOf(initial, sidecars);
    } else initial = largestOf(initial, sumOf(own, sidecars));
  }
  const whole = spec?.resources?.[side];
  return new Map([...largestOf(total, initial), ...amountsOf(whole)]);
}

function amounts({ resources }: Container, side: Side): Amounts {
  return amountsOf(resources?.[side]);
}
