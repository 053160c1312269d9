import * as http from "node:http";
import { type Socket } from "node:net";
import { type Clock, type Logger, messageOf, sleep } from "@spry/kube";
import { type Entry, lineSplitter, parseLine } from "./ledger.ts";

/** `GET` with `Upgrade`, at the administrative port. */
export const admissionsPath = "/admissions";
export const admissionsProtocol = "spry-admissions";
/** Which gateway listens. */
export const gatewayHeader = "spry-gateway";

export interface WitnessOptions {
  /** Of the gateway that admits, and `host:port` of its administrative port. */
  predecessor: { identity: string; admin: string };
  /** This gateway's. */
  identity: string;
  token: () => string | undefined | Promise<string | undefined>;
  clock: Clock;
  log: Logger;
  /** An entry has ended, or all of them are other ones. */
  onEnd: (id: string) => void;
  /** Nothing more is heard. */
  onSilence: () => void;
}

const silenceMs = 5_000;
const retryMs = 250;
const maxEntries = 100_000;

/** Listens to the gateway that admits, to know what is under way should this one succeed it. */
export class Witness {
  readonly #options: WitnessOptions;
  readonly #stop = new AbortController();
  #entries = new Map<string, Entry>();
  #socket: Socket | undefined;
  /** It succeeds: what is heard from a new connection would not be the whole. */
  #isFinal = false;

  constructor(options: WitnessOptions) {
    this.#options = options;
    void this.#run();
  }

  get identity(): string {
    return this.#options.predecessor.identity;
  }
  get isHearing(): boolean {
    return this.#socket !== undefined;
  }
  /** Whether this gateway has succeeded the one that it listens to. */
  get isFinal(): boolean {
    return this.#isFinal;
  }

  /** What is under way there, as of now; from here on only ends follow. */
  succeed(): Entry[] {
    this.#isFinal = true;
    return [...this.#entries.values()];
  }

  close(): void {
    this.#stop.abort();
    this.#socket?.destroy();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    const { clock, log, predecessor } = this.#options;
    while (!signal.aborted && !this.#isFinal) {
      try {
        await this.#listen(await this.#connect(signal));
      } catch (error) {
        const fields = { gateway: predecessor.admin, error: messageOf(error) };
        if (!signal.aborted) log.debug(fields, "following the gateway that admits requests failed");
      }
      this.#socket = undefined;
      this.#options.onSilence();
      await sleep(clock, retryMs, signal);
    }
  }

  async #connect(signal: AbortSignal): Promise<Socket> {
    const { predecessor, identity, token } = this.#options;
    const given = (await token()) ?? "";
    return new Promise((resolve, reject) => {
      const request = http.get(`http://${predecessor.admin}${admissionsPath}`, {
        agent: false,
        signal,
        timeout: silenceMs,
        headers: {
          connection: "Upgrade",
          upgrade: admissionsProtocol,
          authorization: `Bearer ${given}`,
          [gatewayHeader]: identity,
        },
      });
      request.once("error", reject);
      request.once("timeout", () => request.destroy(new Error("no answer")));
      request.once("response", (response) => {
        response.resume();
        reject(new Error(`${admissionsPath} was answered with ${response.statusCode}`));
      });
      request.once("upgrade", (_response, socket: Socket, head: Buffer) => {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
    });
  }

  /** Resolves when the connection has ended. */
  #listen(socket: Socket): Promise<void> {
    // All of a connection is replaced by all of the next one.
    const entries = new Map<string, Entry>();
    let isWhole = false;
    const split = lineSplitter((text) => {
      const line = parseLine(text);
      if (!line) return;
      if ("begin" in line) {
        if (entries.size >= maxEntries) return void socket.destroy();
        entries.set(line.begin.id, line.begin);
        if (isWhole) socket.write(`{"seq":${line.seq}}\n`);
      } else if ("end" in line) {
        entries.delete(line.end);
        this.#options.onEnd(line.end);
      } else if ("all" in line) {
        isWhole = true;
        this.#entries = entries;
        socket.write(`{"seq":${line.all}}\n`);
      }
    });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.setTimeout(silenceMs, () => socket.destroy());
    return new Promise((resolve) => {
      socket.on("data", (chunk: Buffer) => {
        try {
          split(chunk);
        } catch {
          socket.destroy();
        }
      });
      socket.on("error", () => socket.destroy());
      socket.once("close", () => resolve());
    });
  }
}
