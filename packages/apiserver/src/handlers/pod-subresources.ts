import {
  type Condition,
  type Pod,
  setCondition,
  StatusError,
  transportOrigin,
  type UnknownObject,
} from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, conflict, notFound, plainFailure } from "../errors.ts";
import { FieldErrors } from "../field-errors.ts";
import { type HttpResponse } from "../http/message.ts";
import { streamResponse } from "../http/responses.ts";
import { checkPreconditions } from "./delete.ts";
import { placeOf, updateObject } from "./write.ts";

const success = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 };

interface Binding extends UnknownObject {
  target?: { kind?: string; name?: string };
}

/**
 * `pods/binding`: gives a Pod its node, once, as `pkg/registry/core/pod/storage`. It does not count as a change of
 * the specification, and gives no manager ownership of a field.
 */
export async function bindPod(
  engine: Engine,
  request: ResourceRequest,
  binding: Binding,
): Promise<object> {
  const { type, name } = request;
  const { metadata, target = {} } = binding;
  if (metadata.name !== name) throw badRequest("name in URL does not match name in Binding object");
  checkTarget(target);
  const refused = (cause: string) => conflict({ group: "", plural: "pods/binding" }, name, cause);
  const { uid, resourceVersion } = metadata;
  const preconditions = { ...(uid && { uid }), ...(resourceVersion && { resourceVersion }) };
  await updateObject(engine, request, {
    subresource: "binding",
    tracked: true,
    modify(current) {
      checkPreconditions({ ...request, type }, current, { preconditions });
      const pod = current as unknown as Pod & { spec: { schedulingGates?: unknown[] } };
      if (pod.metadata.deletionTimestamp)
        throw refused(`pod ${name} is being deleted, cannot be assigned to a host`);
      if (pod.spec.nodeName)
        throw refused(`pod ${name} is already assigned to node "${pod.spec.nodeName}"`);
      if (pod.spec.schedulingGates?.length)
        throw refused(`pod ${name} has non-empty .spec.schedulingGates`);
      pod.spec.nodeName = target.name ?? "";
      const { annotations, labels } = metadata;
      if (annotations)
        current.metadata.annotations = { ...current.metadata.annotations, ...annotations };
      if (labels) current.metadata.labels = { ...current.metadata.labels, ...labels };
      const scheduled = { type: "PodScheduled", status: "True", lastProbeTime: null } as Condition;
      const known = (pod.status?.conditions ?? []) as Condition[];
      const others = known.filter((each) => each.type !== "PodScheduled");
      const conditions = setCondition<Condition>(others, scheduled, engine.clock);
      current.status = { ...(current.status as object), conditions };
      return current;
    },
  });
  return success;
}

function checkTarget({ kind = "", name = "" }: { kind?: string; name?: string }): void {
  const errors = new FieldErrors();
  if (kind !== "" && kind !== "Node") errors.unsupported("target.kind", kind, ["Node", "<empty>"]);
  if (name === "") errors.required("target.name");
  if (errors.all.length > 0) throw plainFailure(errors.text());
}

/** `earlier` is of this engine alone: see `LogOptions` of its node. */
const logOptions = [
  "follow",
  "previous",
  "tailLines",
  "limitBytes",
  "sinceSeconds",
  "sinceTime",
  "timestamps",
  "earlier",
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
