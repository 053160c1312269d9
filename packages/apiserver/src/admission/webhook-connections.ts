import { Agent, request } from "node:https";
import { type Clock } from "@spry/kube";
import { type Webhook } from "./webhook-configuration.ts";

const maxAnswerBytes = 8 * 1024 * 1024;
const maxIdlePerHost = 4;

/** HTTPS to webhooks, over connections that are kept: a call costs about a millisecond. */
export class WebhookConnections {
  readonly #agents = new Map<string, Agent>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The answer's body. `caBundle` (PEM in base64) alone is trusted when it is given. */
  post(config: Webhook["clientConfig"], body: string, timeoutMs: number): Promise<string> {
    const { url, caBundle } = config;
    if (!url) {
      const { name, namespace } = config.service ?? { name: "?", namespace: "?" };
      return Promise.reject(
        new Error(`service ${namespace}/${name} is not reachable from here: use clientConfig.url`),
      );
    }
    if (!url.startsWith("https://")) return Promise.reject(new Error(`${url} is not an https URL`));
    const agent = this.#agent(caBundle);
    return new Promise((resolve, reject) => {
      const outgoing = request(
        url,
        {
          method: "POST",
          agent,
          headers: {
            "content-type": "application/json",
            accept: "application/json",
            "content-length": Buffer.byteLength(body),
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          let size = 0;
          response.on("data", (chunk: Buffer) => {
            size += chunk.length;
            if (size > maxAnswerBytes) outgoing.destroy(new Error("the answer is too large"));
            else chunks.push(chunk);
          });
          response.on("end", () => {
            cancel();
            const text = Buffer.concat(chunks).toString();
            if (response.statusCode === 200) resolve(text);
            else
              reject(
                new Error(`the server answered ${response.statusCode}: ${text.slice(0, 200)}`),
              );
          });
          response.on("error", reject);
        },
      );
      const cancel = this.#clock.after(timeoutMs, () =>
        outgoing.destroy(new Error(`Post "${url}": context deadline exceeded`)),
      );
      outgoing.on("error", (cause) => {
        cancel();
        reject(new Error(`Post "${url}"`, { cause }));
      });
      outgoing.end(body);
    });
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #agent(caBundle: string | undefined): Agent {
    const key = caBundle ?? "";
    let agent = this.#agents.get(key);
    if (!agent) {
      if (this.#agents.size > 100) this.close();
      agent = new Agent({
        keepAlive: true,
        maxFreeSockets: maxIdlePerHost,
        ...(caBundle && { ca: Buffer.from(caBundle, "base64") }),
      });
      this.#agents.set(key, agent);
    }
    return agent;
  }
}
