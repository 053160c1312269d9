import { hash, randomBytes } from "node:crypto";
import { type KubeClient } from "./client.ts";
import { type Clock, systemClock, timestamp } from "./clock.ts";
import { isNotFound, messageOf } from "./errors.ts";
import { type Logger, silentLogger } from "./log.ts";
import { type KubeObject } from "./objects.ts";
import { apiVersionOf, type Event, type Resource, resources } from "./resources.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface EventRecorderOptions {
  client: KubeClient;
  /** Who speaks: `function-controller`, `kubelet`. */
  component: string;
  /** The node or Pod it runs on. */
  host?: string;
  clock?: Clock;
  log?: Logger;
}

export interface EventNote {
  type: "Normal" | "Warning";
  /** UpperCamelCase, for machines. */
  reason: string;
  /** For people; cut at 1024 bytes. */
  message: string;
}

/** From this many different messages with one reason on, those of ten minutes become one Event (client-go's EventAggregator). */
const maxSimilar = 10;
const similarMs = 600_000;
const combinedPrefix = "(combined from similar events): ";

interface Similar {
  /** Digests of the last `maxSimilar`. */
  messages: string[];
  lastAt: number;
}

interface Recorded {
  name: string;
  count: number;
}

/** `core/v1 Event` validation allows no more. */
const maxMessageBytes = 1024;
/** How many known events and how many objects' rates are remembered; the oldest are forgotten first. */
const maxRemembered = 4096;
/** Events not yet written; more are dropped, because events must never delay the work that they report. */
const maxPending = 1000;
/** Per object, as in client-go: 25 at once, then one in five minutes. */
const burstPerObject = 25;
const perSecondPerObject = 1 / 300;

/**
 * Writes `core/v1` Events. An event equal to an earlier one raises that one's `count`. Recording
 * returns at once and never fails; what could not be written is logged.
 */
export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #recorded = new Map<string, Recorded>();
  readonly #similar = new Map<string, Similar>();
  readonly #buckets = new Map<string, TokenBucket>();
  #pending = 0;
  #writes: Promise<void> = Promise.resolve();
  #lastStamp = 0;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#log = (options.log ?? silentLogger).child({ recorder: options.component });
  }

  /** Records an event about an object that exists or existed (its uid is part of the event). */
  record(resource: Resource, object: KubeObject, note: EventNote): void {
    const bounded = { ...note, message: cut(note.message, maxMessageBytes) };
    if (this.#pending >= maxPending || !this.#bucketOf(object).tryTake()) {
      this.#log.debug({ reason: note.reason }, "dropping event");
      return;
    }
    this.#pending++;
    // One after the other: the count of equal events is read from the one before.
    this.#writes = this.#writes
      .then(() => this.#write(resource, object, bounded))
      .catch((error: unknown) =>
        this.#log.warn({ reason: note.reason, error: messageOf(error) }, "writing event failed"),
      )
      .finally(() => this.#pending--);
  }

  /** Resolves when everything recorded so far has been written or given up. */
  flushed(): Promise<void> {
    return this.#writes;
  }

  async #write(resource: Resource, object: KubeObject, note: EventNote): Promise<void> {
    const { uid, name, namespace } = object.metadata;
    const about = [resource.kind, namespace, name, uid];
    const combined = this.#isOneOfMany(digestOf([about, note.type, note.reason]), note);
    if (combined) note = { ...note, message: cut(combinedPrefix + note.message, maxMessageBytes) };
    const key = digestOf(combined ? [about, note.type, note.reason] : [about, note]);
    const earlier = this.#recorded.get(key);
    const now = timestamp(this.#clock);
    if (earlier) {
      try {
        const count = earlier.count + 1;
        const target = { namespace: namespace ?? "default", name: earlier.name };
        const { message } = note;
        const patch = { message, count, lastTimestamp: now };
        await this.#options.client.patch(resources.events, target, patch);
        remember(this.#recorded, key, { name: earlier.name, count });
        return;
      } catch (error) {
        // Events expire; then this is the first one again.
        if (!isNotFound(error)) throw error;
      }
    }
    const event = this.#eventOf(resource, object, note, now);
    await this.#options.client.create(resources.events, event);
    remember(this.#recorded, key, { name: event.metadata.name ?? "", count: 1 });
  }

  #isOneOfMany(key: string, { message }: EventNote): boolean {
    const now = this.#clock.elapsed();
    const known = this.#similar.get(key);
    const isFresh = known !== undefined && now - known.lastAt <= similarMs;
    const digest = digestOf(message);
    const others = isFresh ? known.messages.filter((each) => each !== digest) : [];
    // Bounded: how many there were is not needed, only that there are still as many.
    const messages = [...others, digest].slice(1 - maxSimilar);
    const isMany = others.length + 1 >= maxSimilar;
    remember(this.#similar, key, { messages, lastAt: now });
    return isMany;
  }

  #eventOf(resource: Resource, object: KubeObject, note: EventNote, now: string): Event {
    const { name = "", namespace, uid, resourceVersion } = object.metadata;
    const { component, host } = this.#options;
    return {
      metadata: {
        // The name pattern of client-go. Two events of one recorder never share a stamp, but two
        // recorders may report on one object in the same millisecond: hence the random end.
        name: `${name.slice(0, 200)}.${this.#stamp().toString(16)}${randomBytes(2).toString("hex")}`,
        namespace: namespace ?? "default",
      },
      involvedObject: {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        name,
        ...(namespace ? { namespace } : {}),
        ...(uid ? { uid } : {}),
        ...(resourceVersion ? { resourceVersion } : {}),
      },
      ...note,
      count: 1,
      firstTimestamp: now,
      lastTimestamp: now,
      source: { component, ...(host ? { host } : {}) },
      reportingComponent: component,
      reportingInstance: host ?? "",
    };
  }

  #stamp(): number {
    this.#lastStamp = Math.max(this.#clock.now() * 1000, this.#lastStamp + 1);
    return this.#lastStamp;
  }

  #bucketOf(object: KubeObject): TokenBucket {
    const { uid, namespace, name } = object.metadata;
    const key = uid ?? `${namespace}/${name}`;
    const bucket =
      this.#buckets.get(key) ??
      new TokenBucket({
        perSecond: perSecondPerObject,
        burst: burstPerObject,
        clock: this.#clock,
      });
    remember(this.#buckets, key, bucket);
    return bucket;
  }
}

/** 72 bits, enough to tell texts apart: thousands of them would take a kilobyte each. A longer slice would keep all that it is of. */
const digestOf = (value: unknown): string =>
  hash("sha256", JSON.stringify(value), "base64url").slice(0, 12);

/** Puts an entry at the young end and forgets the oldest beyond the bound. */
function remember<V>(map: Map<string, V>, key: string, value: V): void {
  map.delete(key);
  map.set(key, value);
  if (map.size > maxRemembered) map.delete(map.keys().next().value ?? "");
}

/** At most `bytes` of UTF-8, never ending within a character. */
function cut(text: string, bytes: number): string {
  const encoded = Buffer.from(text.slice(0, bytes));
  if (encoded.length <= bytes) return text.slice(0, bytes);
  let end = bytes - "…".length * 3;
  while (((encoded[end] ?? 0) & 0xc0) === 0x80) end--;
  return `${encoded.toString("utf8", 0, end)}…`;
}
