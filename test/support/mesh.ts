/**
 * A stand-in for Istio's sidecars: a mutating webhook that injects as Istio's does (by the namespace's label, unless an
 * annotation says no; an init container, the proxy first), and a proxy through which the Pod's HTTP goes in and out.
 * In the style `redirect` it intercepts as Istio's does with its CNI plugin: rules in the Pod's network namespace, made from
 * outside (`mesh-redirect.ts`), send what comes in and goes out to the proxy, whose user is the only one that is not
 * redirected, and an init container waits for them. Elsewhere, by the ports of the Pod's program: processes that share the
 * machine's network have no namespace for such rules.
 */
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { certificateFor } from "@spry/test-kit";

interface Container {
  name: string;
  image?: string;
  env?: { name: string; value?: string; valueFrom?: object }[];
  [field: string]: unknown;
}

interface Pod {
  metadata: { name?: string; generateName?: string; annotations?: Record<string, string> };
  spec: { initContainers?: Container[]; containers: Container[] };
}

export type MeshStyle = "container" | "native" | "redirect";

const inbound = 8080;
const programPort = 15_080;
const outbound = 15_001;
const health = 15_021;
/** Of the style `redirect`: what comes in, and the proxy's user. */
export const redirected = { inbound: 15_006, outbound, user: 1_337, program: inbound } as const;

/** Marks what it has passed on, in both directions. */
const proxy = `
const http = require("node:http");
const pass = (mark, to) => (request, response) => {
  const { host, port, path } = to(request);
  const headers = { ...request.headers, [mark]: "1" };
  const onward = http.request({ host, port, path, method: request.method, headers }, (answer) => {
    response.writeHead(answer.statusCode, { ...answer.headers, [mark]: "1" });
    answer.pipe(response);
  });
  onward.on("error", (error) => response.writeHead(503).end("upstream connect error: " + error.code));
  request.pipe(onward);
};
const own = process.env.POD_IP;
const isRedirected = process.env.REDIRECTED === "1";
const [program, port, listening] = isRedirected
  ? ["127.0.0.1", ${inbound}, ${redirected.inbound}]
  : [own, ${programPort}, ${inbound}];
http.createServer(pass("x-mesh-in", ({ url }) => ({ host: program, port, path: url }))).listen(listening, isRedirected ? "0.0.0.0" : own);
const out = http.createServer(pass("x-mesh-out", ({ url, headers }) => {
  const { hostname, port, pathname, search } = new URL(url, "http://" + headers.host);
  return { host: hostname, port: port || 80, path: pathname + search };
}));
out.on("connect", (_, socket) => {
  socket.write("HTTP/1.1 200 OK\\r\\n\\r\\n");
  out.emit("connection", socket);
});
out.listen(${outbound}, isRedirected ? "0.0.0.0" : own);
http.createServer((_, response) => response.end()).listen(${health}, own);
process.on("SIGTERM", () => process.exit(0));
`;

/** Until what it sends out comes back to it, as Istio's `istio-validation` does. */
const validation = `
require("node:http").createServer((_, response) => response.end("mine")).listen(${outbound}, "0.0.0.0");
const look = () => fetch("http://192.0.2.1/", { signal: AbortSignal.timeout(500) })
  .then((answer) => answer.text())
  .then((text) => process.exit(text === "mine" ? 0 : 1), () => setTimeout(look, 50));
look();
`;

const ownAddress = { name: "POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } };
const securityContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ["ALL"] },
  runAsNonRoot: true,
};

/** The Pod with a sidecar. */
function injected({ metadata, spec, ...rest }: Pod, style: MeshStyle): Pod {
  const [first] = spec.containers;
  const image = first?.image ?? "";
  const probe = { httpGet: { path: "/", port: health }, periodSeconds: 1, failureThreshold: 60 };
  const isRedirected = style === "redirect";
  const sidecar: Container = {
    name: "istio-proxy",
    image,
    command: ["node", "-e", proxy],
    env: [ownAddress, ...(isRedirected ? [{ name: "REDIRECTED", value: "1" }] : [])],
    startupProbe: probe,
    readinessProbe: probe,
    securityContext: {
      ...securityContext,
      ...(isRedirected ? { runAsUser: redirected.user } : {}),
    },
    ...(style === "native" ? { restartPolicy: "Always" } : {}),
  };
  const init = {
    name: isRedirected ? "istio-validation" : "istio-init",
    image,
    command: ["node", "-e", isRedirected ? validation : ""],
    securityContext,
  };
  const withProxy = spec.containers.map(({ env = [], ...container }) => ({
    ...container,
    env: [
      ownAddress,
      ...env.map((each) =>
        each.name === "FUNC_PORT" ? { name: "FUNC_PORT", value: String(programPort) } : each,
      ),
      { name: "HTTP_PROXY", value: `http://$(POD_IP):${outbound}` },
      { name: "NODE_USE_ENV_PROXY", value: "1" },
    ],
  })) as Container[];
  const programs = isRedirected ? spec.containers : withProxy;
  const isNative = style === "native";
  return {
    ...rest,
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, "sidecar.istio.io/status": style },
    },
    spec: {
      ...spec,
      initContainers: [...(spec.initContainers ?? []), init, ...(isNative ? [sidecar] : [])],
      containers: [...(isNative ? [] : [sidecar]), ...programs],
    },
  };
}

export interface Mesh {
  /** How the next Pods get it. */
  style: MeshStyle;
  /** Of the webhook, for `kubectl apply`. */
  configuration: object;
  /** Names of Pods that it was asked about, by whether they got a sidecar. */
  asked: { injected: string[]; left: string[] };
  close(): Promise<void>;
}

export async function startMesh(): Promise<Mesh> {
  const { crt, key } = await certificateFor("127.0.0.1");
  const asked: Mesh["asked"] = { injected: [], left: [] };
  const server = createServer({ cert: crt, key }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { request: review } = JSON.parse(Buffer.concat(chunks).toString()) as {
        request: { uid: string; object: Pod };
      };
      const { metadata, spec } = review.object;
      const name = metadata.name ?? metadata.generateName ?? "";
      const isLeft = metadata.annotations?.["sidecar.istio.io/inject"] === "false";
      (isLeft ? asked.left : asked.injected).push(name);
      const after = injected({ metadata, spec }, mesh.style);
      const patch = [
        { op: "add", path: "/metadata/annotations", value: after.metadata.annotations },
        { op: "add", path: "/spec/initContainers", value: after.spec.initContainers },
        { op: "add", path: "/spec/containers", value: after.spec.containers },
      ];
      const changes = {
        patchType: "JSONPatch",
        patch: Buffer.from(JSON.stringify(patch)).toString("base64"),
      };
      const body = { uid: review.uid, allowed: true, ...(isLeft ? {} : changes) };
      response.setHeader("content-type", "application/json");
      response.end(
        JSON.stringify({
          apiVersion: "admission.k8s.io/v1",
          kind: "AdmissionReview",
          response: body,
        }),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/inject`;
  const mesh: Mesh = {
    style: "container",
    asked,
    configuration: {
      apiVersion: "admissionregistration.k8s.io/v1",
      kind: "MutatingWebhookConfiguration",
      metadata: { name: "istio-sidecar-injector" },
      webhooks: [
        {
          name: "namespace.sidecar-injector.istio.io",
          clientConfig: { url, caBundle: Buffer.from(crt).toString("base64") },
          namespaceSelector: { matchLabels: { "istio-injection": "enabled" } },
          rules: [
            { apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["pods"] },
          ],
          admissionReviewVersions: ["v1"],
          sideEffects: "None",
          failurePolicy: "Fail",
        },
      ],
    },
    async close() {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return mesh;
}
