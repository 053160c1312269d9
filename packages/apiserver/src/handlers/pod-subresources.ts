import {
  type Condition,
  type Pod,
  setCondition,
  StatusError,
  transportOrigin,
  type UnknownObject,
} from "@spry/kube";
import { type Engine, type ResourceRequest } from "../engine.ts";
import { badRequest, conflict, notFound } from "../errors.ts";
import { type HttpResponse } from "../http/message.ts";
import { streamResponse } from "../http/responses.ts";
import { placeOf, updateObject } from "./write.ts";

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

/** `pods/binding`: gives a Pod its node, once. */
export async function bindPod(
  engine: Engine,
  request: ResourceRequest,
  binding: UnknownObject,
): Promise<object> {
  const target = binding.target as { kind?: string; name?: string } | undefined;
  if (!target?.name) throw badRequest("the binding has no target.name");
  await updateObject(engine, request, {
    subresource: "binding",
    modify(current) {
      const pod = current as unknown as Pod;
      if (pod.metadata.deletionTimestamp) {
        throw conflict(
          request.type,
          request.name,
          `pod ${request.name} is being deleted, cannot be assigned to a host`,
        );
      }
      if (pod.spec?.nodeName) {
        throw conflict(
          request.type,
          request.name,
          `pod ${request.name} is already assigned to node "${pod.spec.nodeName}"`,
        );
      }
      if (pod.spec) pod.spec.nodeName = target.name ?? "";
      const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null } as Condition;
      const known = (pod.status?.conditions ?? []) as Condition[];
      const others = known.filter(({ type }) => type !== "PodScheduled");
      const conditions = setCondition<Condition>(others, scheduled, engine.clock);
      current.status = { ...pod.status, conditions };
      return current;
    },
  });
  return success;
}

const logOptions = [
  "follow",
  "previous",
  "tailLines",
  "limitBytes",
  "sinceSeconds",
  "sinceTime",
  "timestamps",
];

/** `pods/log`: what the Pod's node answers, as it comes. */
export async function podLog(engine: Engine, request: ResourceRequest): Promise<HttpResponse> {
  const { type, name, namespace, query, signal } = request;
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(type, name);
  const pod = stored.object as unknown as Pod;
  const container = containerOf(pod, query.get("container"));
  const nodeName = pod.spec?.nodeName;
  if (!nodeName) throw badRequest(`pod ${name} does not have a host assigned`);
  const kubelet = engine.kubelet(nodeName);
  if (!kubelet) {
    throw new StatusError({
      code: 500,
      message: `Internal error occurred: node ${nodeName} is not connected`,
    });
  }
  const passed = new URLSearchParams();
  for (const option of logOptions) {
    const value = query.get(option);
    if (value !== null) passed.set(option, value);
  }
  const path = ["containerLogs", namespace, name, container].map(encodeURIComponent).join("/");
  const answer = await kubelet(new Request(`${transportOrigin}/${path}?${passed}`, { signal }));
  if (answer.ok) {
    return streamResponse(answer.body, "text/plain");
  }
  throw await kubeletFailure(answer, `container "${container}" in pod "${name}"`);
}

/** What a node has answered instead of doing it. */
export async function kubeletFailure(answer: Response, what: string): Promise<StatusError> {
  const text = (await answer.text()).slice(0, 2048).trim();
  return new StatusError({
    code: answer.status >= 400 && answer.status < 500 ? answer.status : 500,
    message: told(text) || `${what}: the node answered ${answer.status}`,
  });
}

function told(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text;
  }
}

/** The container that a request means; the only one where none is named. */
export function containerOf(pod: Pod, wanted: string | null): string {
  const { spec, metadata } = pod;
  const names = [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])].map(
    ({ name }) => name,
  );
  if (wanted) {
    if (names.includes(wanted)) return wanted;
    throw badRequest(`container ${wanted} is not valid for pod ${metadata.name}`);
  }
  const [only, ...others] = (spec?.containers ?? []).map(({ name }) => name);
  if (only && others.length === 0) return only;
  throw badRequest(
    `a container name must be specified for pod ${metadata.name}, choose one of: [${names.join(" ")}]`,
  );
}
