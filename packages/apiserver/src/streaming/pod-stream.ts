import { type Pod, StatusError, transportOrigin } from "@spry/kube";
import { type Engine } from "../engine.ts";
import { type ResourceRequest } from "../request.ts";
import { badRequest, notFound, unknownPath } from "../errors.ts";
import { containerOf, kubeletFailure } from "../handlers/pod-subresources.ts";
import { placeOf } from "../handlers/write.ts";

/** The streams into a Pod that a client may open; the Pod and its node have been looked up. */
export type PodStream = CommandStream | PortStream;

type Body = ReadableStream<Uint8Array>;

export interface CommandStream {
  kind: "command";
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  tty: boolean;
  /** Starts it; both bodies are channel frames. Throws a `StatusError`. */
  open(body: Body, signal: AbortSignal): Promise<Body>;
}

export interface PortStream {
  kind: "port";
  /** Those of the query, where a client names them there. */
  ports: readonly string[];
  /** One connection to a port of the Pod. Throws a `StatusError`. */
  open(port: string, body: Body, signal: AbortSignal): Promise<Body>;
}

/** Channels are numbered in one byte, two per port. */
const maxPorts = 100;

/** Paths of requests that want their connection for something else than HTTP. */
export const podStreamPath = /\/pods\/[^/?]+\/(?:exec|attach|portforward)\/?(?:\?|$)/;

/** What `pods/exec`, `pods/attach` or `pods/portforward` asks for. Throws a `StatusError`. */
export function podStreamOf(engine: Engine, request: ResourceRequest): PodStream {
  const { type, namespace, name, subresource, query } = request;
  if (type.collection !== "/pods") throw unknownPath();
  const stored = engine.store.get(placeOf(request));
  if (!stored) throw notFound(type, name);
  const pod = stored.object as unknown as Pod;
  const nodeName = pod.spec?.nodeName;
  const send = async (path: string[], sent: URLSearchParams, body: Body, signal: AbortSignal) => {
    if (!nodeName) throw badRequest(`pod ${name} does not have a host assigned`);
    const kubelet = engine.kubelet(nodeName);
    if (!kubelet) {
      const message = `Internal error occurred: node ${nodeName} is not connected`;
      throw new StatusError({ code: 500, message });
    }
    const url = `${transportOrigin}/${path.map(encodeURIComponent).join("/")}?${sent}`;
    const answer = await kubelet(
      new Request(url, { method: "POST", body, signal, duplex: "half" } as RequestInit),
    );
    if (!answer.ok || !answer.body) throw await kubeletFailure(answer, `pod "${name}"`);
    return answer.body as Body;
  };
  if (subresource === "portforward") {
    const open: PortStream["open"] = (port, body, signal) =>
      send(["portForward", namespace, name], new URLSearchParams({ port }), body, signal);
    const ports = query.getAll("ports").flatMap((each) => each.split(","));
    if (ports.length > maxPorts) throw badRequest(`more than ${maxPorts} ports`);
    return { kind: "port", ports, open };
  }
  if (subresource !== "exec" && subresource !== "attach") throw unknownPath();
  const { phase } = pod.status ?? {};
  if (phase === "Succeeded" || phase === "Failed") {
    const message = `cannot ${subresource} ${subresource === "exec" ? "in a container" : "a container"} in a completed pod; current phase is ${phase}`;
    throw badRequest(message);
  }
  const container = containerOf(pod, query.get("container"));
  const flag = (option: string) => ["true", "1"].includes(query.get(option) ?? "");
  const [stdin, tty] = [flag("stdin"), flag("tty")];
  const streams = { stdin, tty, stdout: flag("stdout"), stderr: flag("stderr") && !tty };
  if (!stdin && !streams.stdout && !streams.stderr)
    throw badRequest("you must specify at least 1 of stdin, stdout, stderr");
  const sent = new URLSearchParams({ stdin: String(stdin), tty: String(tty) });
  for (const word of query.getAll("command")) sent.append("command", word);
  const path = [subresource, namespace, name, container];
  return { kind: "command", ...streams, open: (body, signal) => send(path, sent, body, signal) };
}
