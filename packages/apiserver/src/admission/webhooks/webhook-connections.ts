import { Agent, request } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { posix } from "node:path";
import { type Clock, OutboundGuard } from "@spry/kube";
import { type Store } from "../../store/store.ts";
import { goNetworkError } from "./network-errors.ts";
import { type Address, serviceAddress } from "./service-address.ts";
import { WebhookAgent } from "./webhook-agent.ts";
import { type ClientConfig } from "../../resources/webhook-client.ts";

/** More than the largest object that can be stored, twice: the answer may hold an object. */
const maxAnswerBytes = 8 * 1024 * 1024;
const maxIdlePerHost = 4;
const maxAgents = 100;

interface Target {
  host: string;
  port: number;
  path: string;
  servername: string;
  headers: Record<string, string>;
  lookup?: LookupFunction;
}

interface Answer {
  status: number;
  contentType: string;
  text: string;
}

/** HTTPS to webhooks, over connections that are kept: a call costs about a millisecond. */
export class WebhookConnections {
  readonly #agents = new Map<string, Agent>();
  readonly #clock: Clock;
  readonly #store: Store;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /**
   * The answer's body. `caBundle` (PEM in base64) alone is trusted when it is given. Rejects with an
   * Error in the words of Go's HTTP client, which people know from clusters.
   */
  async post(config: ClientConfig, body: string, timeoutSeconds: number): Promise<string> {
    const url = urlOf(config);
    url.pathname = cleanPath(url.pathname);
    url.searchParams.set("timeout", `${timeoutSeconds}s`);
    const written = writtenUrl(url, config);
    try {
      const target = this.#target(url, config);
      const answer = await this.#exchange(target, config, body, timeoutSeconds);
      if (answer.status >= 200 && answer.status < 300) return answer.text;
      throw new AnswerError(unsuccessful(answer));
    } catch (cause) {
      if (cause instanceof AnswerError) throw cause;
      throw new Error(`Post "${written}": ${goNetworkError(cause)}`, { cause: cause });
    }
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
    this.#agents.clear();
  }

  #target(url: URL, { service }: ClientConfig): Target {
    const path = `${url.pathname}${url.search}`;
    const host = url.hostname.replaceAll(/[[\]]/g, "");
    if (!service)
      return {
        host,
        port: Number(url.port) || 443,
        path,
        servername: isIP(host) ? "" : host,
        headers: {},
      };
    const { namespace, name, port = 443 } = service;
    // A certificate is for the Service's name, whichever Pod answers.
    const address = serviceAddress(this.#store, { namespace, name, port });
    // A Service is its namespace's, which may lead the name elsewhere; a URL is the administrator's.
    const guarded = address.isExternal ? guardedAt(address) : {};
    return { ...guarded, ...address, path, servername: host, headers: { host: `${host}:${port}` } };
  }

  #exchange(
    target: Target,
    { caBundle }: ClientConfig,
    body: string,
    timeoutSeconds: number,
  ): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const outgoing = request(
        {
          ...target,
          method: "POST",
          agent: this.#agent(caBundle),
          headers: {
            ...target.headers,
            "content-type": "application/json",
            accept: "application/json, */*",
            "user-agent": "kube-apiserver-admission",
            "content-length": Buffer.byteLength(body),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on("data", (chunk: Buffer) => {
            size += chunk.length;
            if (size > maxAnswerBytes) {
              outgoing.destroy(new Error(`the answer is larger than ${maxAnswerBytes} bytes`));
            } else chunks.push(chunk);
          });
          response.on("end", () => {
            cancel();
            const { statusCode: status = 0, headers } = response;
            const contentType = headers["content-type"] ?? "";
            resolve({ status, contentType, text: Buffer.concat(chunks).toString() });
          });
          response.on("error", fail);
        },
      );
      const fail = (error: Error) => {
        cancel();
        reject(error);
      };
      const cancel = this.#clock.after(timeoutSeconds * 1000, () =>
        outgoing.destroy(new Error("context deadline exceeded")),
      );
      outgoing.on("error", fail);
      outgoing.end(body);
    });
  }

  #agent(caBundle: string | undefined): Agent {
    const key = caBundle ?? "";
    let agent = this.#agents.get(key);
    if (!agent) {
      if (this.#agents.size >= maxAgents) this.close();
      const options = { keepAlive: true, maxFreeSockets: maxIdlePerHost };
      // As in Go, each certificate of the bundle is an anchor: controller-runtime's envtest puts the server's own there.
      agent = caBundle
        ? new WebhookAgent(
            { ...options, allowPartialTrustChain: true },
            Buffer.from(caBundle, "base64").toString("latin1"),
          )
        : new Agent(options);
      this.#agents.set(key, agent);
    }
    return agent;
  }
}

const ofServices = new OutboundGuard({ allowPrivate: true });

/** Throws where the address may not be called. */
function guardedAt({ host, port }: Address): { lookup: LookupFunction } {
  const refused = ofServices.refusal(host, port);
  if (refused) throw refused;
  return { lookup: ofServices.lookup(port) };
}

/** The webhook has answered, but not with success. */
class AnswerError extends Error {}

function urlOf({ url, service }: ClientConfig): URL {
  if (url !== undefined) {
    if (!URL.canParse(url) || !url.startsWith("https://"))
      throw new Error(`${url} is not an https URL`);
    return new URL(url);
  }
  if (!service) throw new Error("webhook configuration must have either service or URL");
  const { name, namespace, port = 443, path = "/" } = service;
  return new URL(
    `https://${name}.${namespace}.svc:${port}${path.startsWith("/") ? "" : "/"}${path}`,
  );
}

/** Without double and last slashes (`client-go/rest`, `NewRequest`): envtest asks for `https://host//path`. */
function cleanPath(path: string): string {
  return posix.join("/", path).replace(/(?<=.)\/$/, "");
}

/** With the port 443 of a Service, which `URL` leaves out. */
function writtenUrl(url: URL, { service }: ClientConfig): string {
  if (!service) return url.href;
  return `https://${url.hostname}:${service.port ?? 443}${url.pathname}${url.search}`;
}

/** `client-go/rest`: a response that is neither a success nor a `Status`. */
function unsuccessful({ status, contentType, text }: Answer): string {
  try {
    const told = JSON.parse(text) as { kind?: string; message?: string };
    if (told.kind === "Status" && told.message) return told.message;
  } catch {
    // Told below.
  }
  const shown = (contentType.startsWith("text/") && text.slice(0, 2048).trim()) || "unknown";
  switch (status) {
    case 400:
      return "the server rejected our request for an unknown reason";
    case 401:
      return "the server has asked for the client to provide credentials";
    case 403:
      return shown;
    case 404:
      return "the server could not find the requested resource";
    case 405:
      return "the server does not allow this method on the requested resource";
    case 429:
      return "the server has received too many requests and has asked us to try again later";
    case 503:
      return "the server is currently unable to handle the request";
    case 504:
      return "the server was unable to return a response in the time allotted, but may still be processing the request";
  }
  if (status >= 500)
    return `an error on the server (${JSON.stringify(shown)}) has prevented the request from succeeding`;
  return `the server responded with the status code ${status} but did not return more information`;
}
