/**
 * Other Functions under the names that they have on the platform (`http://NAME`, `http://NAME.NAMESPACE.svc.cluster.local`):
 * at an address that the user names, or through the gateway of a platform that can be reached.
 */
import {
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type ServerResponse,
} from "node:http";
import { type Function, functions } from "@spry/function";
import { type KubeClient } from "@spry/kube";
import { ServiceFiles } from "@spry/machine";
import { UserError } from "../user-error.ts";
import { hostNameOf } from "./allowed-hosts.ts";

export interface NeighbourOptions {
  /** `NAME=URL` or `NAME.NAMESPACE=URL`, as the user wrote them. */
  named: readonly string[];
  namespace: string;
  /** Directory for the files that name them. */
  scratch: string;
  client: KubeClient | undefined;
  gateway: URL | undefined;
}

export interface Neighbours {
  /** Variables of the Function's process. */
  env(nodeOptions: string | undefined): Record<string, string>;
  /** Those that can be called: `name.namespace`. */
  names: string[];
  /** Where they are called, on 127.0.0.1. */
  port: number;
  close(): void;
}

interface Neighbour {
  name: string;
  namespace: string;
  url: URL;
  host: string;
}

const listMs = 2000;

/** Finds the neighbours and opens the port through which they are called. */
export async function openNeighbours(options: NeighbourOptions): Promise<Neighbours> {
  const found = new Map<string, Neighbour>();
  for (const one of await throughGateway(options)) found.set(`${one.name}.${one.namespace}`, one);
  for (const text of options.named) {
    const one = neighbourNamed(text, options.namespace);
    found.set(`${one.name}.${one.namespace}`, one);
  }
  const byHost = hostsOf([...found.values()], options.namespace);
  const server = createServer((request, response) => {
    pass(request, response, byHost.get(hostNameOf(request.headers.host) ?? ""));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  const { port } = server.address() as { port: number };
  const files = new ServiceFiles(options.scratch);
  files.prepare();
  const endpoints = [{ ip: "127.0.0.1", port }];
  await files.apply(
    [...found.values()].map(({ name, namespace }) => ({
      name,
      namespace,
      // Of no network: the hook leads calls to the endpoint.
      clusterIp: "127.0.0.1",
      ports: [{ name: "", port: 80, protocol: "TCP", endpoints }],
      addresses: [],
    })),
  );
  return {
    names: [...found.keys()],
    port,
    env: (nodeOptions) => ({
      SPRY_SERVICES: files.viewOf(options.namespace),
      ...(nodeOptions !== undefined && { NODE_OPTIONS: files.nodeOptions(nodeOptions) }),
    }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

/**
 * The names that a cluster's DNS gives each of them, and no other: a page in the user's browser, of whatever host, may send requests
 * to this port, too.
 */
function hostsOf(all: readonly Neighbour[], own: string): Map<string, Neighbour> {
  const hosts = new Map<string, Neighbour>();
  for (const one of all) {
    const { name, namespace } = one;
    if (namespace === own) hosts.set(name, one);
    for (const end of ["", ".svc", ".svc.cluster.local"])
      hosts.set(`${name}.${namespace}${end}`, one);
  }
  return hosts;
}

function neighbourNamed(text: string, own: string): Neighbour {
  const [, key = "", address = ""] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  const [name = "", namespace = own] = key.split(".");
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!name || url?.protocol !== "http:")
    throw new UserError(
      `${text} is not a valid neighbour`,
      "write it as NAME=URL, for example stock=http://localhost:3001",
    );
  return { name, namespace, url, host: url.host };
}

async function throughGateway({ client, gateway }: NeighbourOptions): Promise<Neighbour[]> {
  if (!client || !gateway) return [];
  let items: Function[];
  try {
    ({ items } = await client.list(functions, { signal: AbortSignal.timeout(listMs) }));
  } catch {
    return [];
  }
  return items.map(({ metadata: { name = "", namespace = "" } }) => {
    const host = `${name}.${namespace}.localhost:${gateway.port || 80}`;
    return { name, namespace, url: gateway, host };
  });
}

function pass(request: IncomingMessage, response: ServerResponse, to: Neighbour | undefined): void {
  if (!to) {
    request.resume();
    return void response.writeHead(503).end("the neighbour is not known to spry dev\n");
  }
  const prefix = to.url.pathname.replace(/\/$/, "");
  const onward = httpRequest(
    {
      host: to.url.hostname,
      port: to.url.port || 80,
      method: request.method,
      path: `${prefix}${request.url}`,
      headers: { ...request.headers, host: to.host },
    },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    },
  );
  response.once("close", () => onward.destroy());
  onward.once("error", (error) => {
    if (response.headersSent) return void response.destroy();
    response.writeHead(502).end(`the neighbour ${to.name} cannot be reached: ${error.message}\n`);
  });
  request.pipe(onward);
}
