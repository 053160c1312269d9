import { type Subscription } from "@spry/function";
import { type ObjectKey, type Service } from "@spry/kube";
import { type NamespaceLimit } from "./namespace-limit.ts";
import { type Plan, planOf } from "./plan.ts";
import { problemsOf, readSink } from "./validate.ts";

/** Whether a Subscription can be served, decided from objects alone: its status and its dispatcher agree. */
export type Assessment = { plan: Plan } | { problem: string };

/** In the original's words (eventing-manager, `subscription/validator`). */
export function assess(
  subscription: Subscription,
  serviceOf: (key: ObjectKey) => Service | undefined,
  limit?: Pick<NamespaceLimit, "problemOf">,
): Assessment {
  const failed = (text: string) => ({ problem: `Subscription validation failed: ${text}` });
  const isTooMany = limit?.problemOf(subscription);
  if (isTooMany !== undefined) return failed(isTooMany);
  const problems = problemsOf(subscription);
  if (problems.length === 1) return failed(problems[0] ?? "");
  if (problems.length > 1) return failed(`[${problems.join(", ")}]`);
  const sink = readSink(subscription.spec.sink, subscription.metadata.namespace ?? "");
  if ("problem" in sink) return failed(sink.problem);
  const { namespace, name } = sink;
  const service = serviceOf(`${namespace}/${name}`);
  if (!service)
    return failed(`Sink validation failed: service ${name}.${namespace} not found in the cluster`);
  if (service.spec?.type === "ExternalName")
    return failed(
      `Sink validation failed: service ${name}.${namespace} is of type ExternalName, which leads out of the cluster`,
    );
  if (!(service.spec?.ports ?? []).some(({ port }) => port === sink.port))
    return failed(`Sink validation failed: service ${name}.${namespace} has no port ${sink.port}`);
  return { plan: planOf(subscription, sink) };
}
