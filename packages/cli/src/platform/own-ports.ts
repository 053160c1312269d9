/**
 * The platform's ports are its own: while it does not run, a Pod that uses the machine's network can take them, and would get what is
 * meant for it. Such a Pod is ended, and named.
 */
import { createServer } from "node:net";
import { type Logger } from "@spry/kube";
import { endPodsAtPort } from "@spry/machine";
import { isAddressInUse } from "./port-in-use.ts";

const host = "127.0.0.1";
const attempts = 3;

export class OwnPorts {
  readonly #dataDir: string;
  readonly #log: Logger;
  /** A sentence for each Pod that was ended. */
  readonly remarks: string[] = [];

  /** `dataDir`: of the node. */
  constructor(dataDir: string, log: Logger) {
    this.#dataDir = dataDir;
    this.#log = log;
  }

  /** Ends the Pods that have one of these ports, also at ::1, where clients of `localhost` ask first. Of 0, which is any, none. */
  async free(ports: readonly number[]): Promise<void> {
    for (const port of ports) {
      await this.#end(port, false);
      if (port > 0 && (await isTaken(port))) await this.#end(port, true);
    }
  }

  /** Listens at a port, after ending the Pods that have it. Rejects as `listen` does where another program has it. */
  async listen<T>(port: number, listen: (port: number) => Promise<T>): Promise<T> {
    await this.#end(port, false);
    for (let left = attempts; ; left--) {
      try {
        return await listen(port);
      } catch (error) {
        if (left <= 1 || !isAddressInUse(error) || !(await this.#end(port, true))) throw error;
      }
    }
  }

  async #end(port: number, isKnownToBeTaken: boolean): Promise<boolean> {
    const dataDir = this.#dataDir;
    const ended = await endPodsAtPort({ dataDir, port, isTaken: isKnownToBeTaken });
    for (const { namespace, name } of ended) {
      this.#log.warn({ namespace, pod: name, port }, "ended a Pod that had the platform's port");
      this.remarks.push(`${port} had been taken by the Pod ${namespace}/${name}, which was ended`);
    }
    return ended.length > 0;
  }
}

function isTaken(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve(isAddressInUse(error)));
    server.listen(port, host, () => server.close(() => resolve(false)));
  });
}
