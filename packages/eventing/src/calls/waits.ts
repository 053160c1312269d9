import { type Clock, type ObjectKey } from "@spry/kube";
import { type Queue } from "@spry/queue";
import { type Call, hasEnded } from "./call.ts";
import { type Wait } from "./function-looks.ts";

/** Records: why calls of a Function wait; one for all of them, since only some are tried while it is away. */
export const waitsBucket = (namespace: string): string => `call-waits/${namespace}`;

const keptMs = 25 * 3_600_000;

/** Written by what makes the calls; read by whatever is asked about one. */
export class Waits {
  readonly #queue: Queue;
  readonly #clock: Clock;
  /** As they are written; undefined: there is none. A Function that is missing here may have one of an earlier process. */
  readonly #noted = new Map<ObjectKey, string | undefined>();

  constructor(queue: Queue, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  async note(key: ObjectKey, wait: Wait): Promise<void> {
    const value = JSON.stringify(wait);
    if (this.#noted.get(key) === value) return;
    const [namespace = "", name = ""] = key.split("/");
    const expiresAt = this.#clock.now() + keptMs;
    await this.#queue.put({ bucket: waitsBucket(namespace), key: name, value, expiresAt });
    this.#noted.set(key, value);
  }

  async clear(key: ObjectKey): Promise<void> {
    if (this.#noted.has(key) && this.#noted.get(key) === undefined) return;
    const [namespace = "", name = ""] = key.split("/");
    const known = await this.#queue.get(waitsBucket(namespace), name);
    if (known !== undefined) await this.#queue.remove(waitsBucket(namespace), name);
    this.#noted.set(key, undefined);
  }

  async read(namespace: string, name: string): Promise<Wait | undefined> {
    return waitOf(this.#queue, namespace, name);
  }

  forget(key: ObjectKey): void {
    this.#noted.delete(key);
  }
}

async function waitOf(queue: Queue, namespace: string, name: string): Promise<Wait | undefined> {
  const kept = await queue.get(waitsBucket(namespace), name);
  return kept === undefined ? undefined : (JSON.parse(kept) as Wait);
}

/** The call with why it waits, if it does: as anyone may know it, or with what only its Function's owner should read. */
export async function withWait(
  queue: Queue,
  namespace: string,
  call: Call,
  { isPublic, now }: { isPublic: boolean; now: number },
): Promise<Call> {
  const { publicError, ...shown } = call;
  if (isPublic && publicError !== undefined) shown.error = publicError;
  const isDue = call.notBefore === undefined || Date.parse(call.notBefore) <= now;
  if (hasEnded(call) || !isDue) return shown;
  const wait = await waitOf(queue, namespace, call.function);
  if (!wait) return shown;
  const { reason, message, publicMessage = message } = wait;
  // One that runs only tries to, as long as there is a reason to wait.
  return {
    ...shown,
    state: "waiting",
    reason,
    error: `${reason}: ${isPublic ? publicMessage : message}`,
  };
}
