/** Program: the noise that a tenant with the rights of `edit` makes in its namespace, until it is ended. */
import { request as httpRequest } from "node:http";
import { Agent, request as httpsRequest, type RequestOptions } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

interface Place {
  kind: string;
  namespace: string;
  token: string;
  ca: string;
  apiServer: string;
  gateway: string;
  publisher: string;
}

type Noise = (place: Place) => Promise<void>;

export const noises: Record<string, Noise> = {
  /** Seven hundred new connections at once, again and again. */
  connections: async (place) => {
    for (;;) {
      await times(700, () => ask(place, "GET", "configmaps?limit=1", { agent: fresh(place) }));
      await pause(500);
    }
  },
  /** Seven hundred requests whose bodies of 2.9 MB never end. */
  bodies: async (place) => {
    const part = Buffer.alloc(2_900_000, "a");
    await times(700, () => {
      const headers = { "content-type": "application/json", "content-length": 2_999_999 };
      const call = httpsRequest(target(place, "configmaps"), options(place, "POST", { headers }));
      call.on("error", () => {}).write(part);
      return new Promise(() => {});
    });
  },
  /** Five hundred watches that are never read, while a large object is edited. */
  watches: async (place) => {
    await ask(place, "POST", "configmaps", { body: configMap("noise", 100_000) });
    const watching = times(500, () => {
      const call = httpsRequest(target(place, "configmaps?watch=1"), options(place, "GET", {}));
      call.on("response", (response) => response.pause()).on("error", () => {});
      call.end();
      return new Promise(() => {});
    });
    for (let n = 0; n < 300; n++)
      await ask(place, "PUT", "configmaps/noise", { body: configMap("noise", 100_000, `${n}`) });
    await watching;
  },
  /** Lists of 10 MB in protobuf, 300 at once. */
  lists: async (place) => {
    for (let n = 0; n < 20; n++)
      await ask(place, "POST", "configmaps", { body: configMap(`large-${n}`, 500_000) });
    const accept = "application/vnd.kubernetes.protobuf";
    for (;;) await times(300, () => ask(place, "GET", "configmaps", { headers: { accept } }));
  },
  /** Three thousand Services. */
  services: async (place) => {
    await inTurns(3_000, 32, (n) =>
      ask(place, "POST", "services", {
        body: JSON.stringify({
          metadata: { name: `noise-${n}` },
          spec: { selector: { app: "noise" }, ports: [{ port: 80 }] },
        }),
      }),
    );
  },
  /** Twenty NetworkPolicies with 3,000 blocks of addresses each. */
  policies: async (place) => {
    const from = Array.from({ length: 3_000 }, (_, n) => ({
      ipBlock: { cidr: `10.${n >> 8}.${n & 255}.0/24` },
    }));
    const body = (n: number) =>
      JSON.stringify({
        metadata: { name: `noise-${n}` },
        spec: { podSelector: {}, ingress: [{ from }] },
      });
    const api = "/apis/networking.k8s.io/v1";
    await times(20, (n) => ask(place, "POST", "networkpolicies", { api, body: body(n) }));
  },
  /** As many events as the publisher takes. */
  events: async (place) => {
    const body = (n: number) =>
      `{"specversion":"1.0","id":"noise-${n}","source":"noise","type":"noise.made.v1","data":{}}`;
    const headers = { "content-type": "application/cloudevents+json" };
    await inTurns(Infinity, 64, (n) => post(`${place.publisher}/publish`, headers, body(n)));
  },
  /** Fifty Functions at once, each one with a new image. */
  builds: async (place) => {
    const api = "/apis/serverless.kyma-project.io/v1alpha2";
    await times(50, (n) =>
      ask(place, "POST", "functions", {
        api,
        body: JSON.stringify({
          apiVersion: "serverless.kyma-project.io/v1alpha2",
          kind: "Function",
          metadata: { name: `noise-${n}` },
          spec: {
            runtime: "nodejs24",
            source: { inline: { source: `module.exports = { main: () => "${n}" };` } },
          },
        }),
      }),
    );
  },
  /** Calls of the tenant's own Function, 256 at once. */
  calls: async (place) => {
    const headers = { host: `own.${place.namespace}.localhost` };
    await inTurns(Infinity, 256, () => post(place.gateway, headers, "x".repeat(10_000)));
  },
};

interface Call {
  api?: string;
  body?: string;
  headers?: Record<string, string | number>;
  agent?: Agent;
}

const shared: { agent?: Agent } = {};
const fresh = ({ ca }: Place) => new Agent({ ca, maxCachedSessions: 0 });

function target({ apiServer, namespace }: Place, resource: string, api = "/api/v1"): URL {
  return new URL(`${api}/namespaces/${namespace}/${resource}`, apiServer);
}

function options(place: Place, method: string, { headers, agent }: Call): RequestOptions {
  const authorization = `Bearer ${place.token}`;
  shared.agent ??= new Agent({ ca: place.ca, keepAlive: true, maxSockets: 1_000 });
  return { method, agent: agent ?? shared.agent, headers: { authorization, ...headers } };
}

/** Whatever is answered: a noise goes on. */
function ask(place: Place, method: string, resource: string, call: Call = {}): Promise<void> {
  const headers = { "content-type": "application/json", ...call.headers };
  return new Promise((resolve) => {
    const outgoing = httpsRequest(
      target(place, resource, call.api),
      options(place, method, { ...call, headers }),
      (response) => {
        if (process.env["NOISE_STATUS"]) console.error(method, resource, response.statusCode);
        response.resume().once("close", resolve);
      },
    );
    outgoing.on("error", () => resolve()).end(call.body);
    outgoing.once("close", () => call.agent?.destroy());
  });
}

function post(url: string, headers: Record<string, string>, body: string): Promise<void> {
  return new Promise((resolve) => {
    const call = httpRequest(url, { method: "POST", headers }, (response) =>
      response.resume().once("close", resolve),
    );
    call.on("error", () => resolve()).end(body);
  });
}

function configMap(name: string, size: number, edit = ""): string {
  return JSON.stringify({ metadata: { name }, data: { edit, text: "x".repeat(size) } });
}

async function times(count: number, act: (n: number) => Promise<unknown>): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => act(n)));
}

async function inTurns(count: number, width: number, act: (n: number) => Promise<unknown>) {
  let next = 0;
  const worker = async () => {
    while (next < count) await act(next++);
  };
  await times(width, worker);
}

const [, program = "", given] = process.argv;
if (given !== undefined && import.meta.url === pathToFileURL(program).href) {
  const place = JSON.parse(given) as Place;
  setInterval(() => {}, 2 ** 30);
  await noises[place.kind]?.(place);
}
