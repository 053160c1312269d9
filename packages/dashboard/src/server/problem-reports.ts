import { type IncomingMessage } from "node:http";
import { type Logger, silentLogger, TokenBucket } from "@spry/kube";
import { readJson } from "./http.ts";

const maxBytes = 16 * 1024;
const maxLength = 2_000;

/** `POST /problems`: what has failed in a user's page goes to this server's log. Their number is bounded. */
export class ProblemReports {
  readonly #log: Logger;
  readonly #bucket = new TokenBucket({ perSecond: 1, burst: 60 });

  constructor(log: Logger = silentLogger) {
    this.#log = log;
  }

  async take(request: IncomingMessage): Promise<void> {
    const { where, message, stack } = await readJson(request, maxBytes);
    if (!this.#bucket.tryTake()) return;
    const text = (value: unknown) => (typeof value === "string" ? value.slice(0, maxLength) : "");
    const fields = { where: text(where), error: text(message), stack: text(stack) };
    this.#log.warn(fields, "a part of the dashboard's page has failed");
  }
}
