import { monotonicMs } from "../clock.ts";
import { type SpanContext } from "./trace-context.ts";

type Attributes = Record<string, unknown>;
/** OpenTelemetry's TimeInput: milliseconds, a date, or seconds and nanoseconds. */
type Time = number | Date | [number, number];

export interface SpanEvent {
  name: string;
  timeMs: number;
  attributes: Attributes;
}

export const spanKinds = { internal: 1, server: 2, client: 3, producer: 4, consumer: 5 } as const;

const limits = { attributes: 128, events: 128 };

/** OpenTelemetry's Span. It is recorded when its trace is sampled, and handed over when it ends. */
export class Span {
  name: string;
  readonly kind: number;
  readonly parentSpanId: string | undefined;
  readonly startMs: number;
  readonly attributes: Attributes;
  readonly events: SpanEvent[] = [];
  /** OpenTelemetry's: 0 unset, 1 ok, 2 error. */
  status: { code: number; message?: string } = { code: 0 };
  endMs: number | undefined;
  readonly #context: SpanContext;
  readonly #onEnd: ((span: Span) => void) | undefined;

  constructor(
    name: string,
    context: SpanContext,
    options: {
      kind?: number | undefined;
      parentSpanId?: string | undefined;
      startTime?: Time | undefined;
      attributes?: Attributes | undefined;
      onEnd?: ((span: Span) => void) | undefined;
    } = {},
  ) {
    this.name = name;
    this.#context = context;
    this.kind = options.kind ?? spanKinds.internal;
    this.parentSpanId = options.parentSpanId;
    this.startMs = milliseconds(options.startTime);
    this.#onEnd = context.traceFlags === 1 ? options.onEnd : undefined;
    this.attributes = options.attributes ?? {};
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  isRecording(): boolean {
    return this.#onEnd !== undefined && this.endMs === undefined;
  }

  setAttribute(name: string, value: unknown): this {
    const isNew = !Object.hasOwn(this.attributes, name);
    if (this.isRecording() && !(isNew && Object.keys(this.attributes).length >= limits.attributes))
      this.attributes[name] = value;
    return this;
  }

  setAttributes(attributes: Attributes): this {
    for (const [name, value] of Object.entries(attributes)) this.setAttribute(name, value);
    return this;
  }

  /** `addEvent(name[, attributes][, time])`. */
  addEvent(name: string, attributesOrTime?: Attributes | Time, time?: Time): this {
    const isTime = typeof attributesOrTime !== "object" || isTimeObject(attributesOrTime);
    if (this.isRecording() && this.events.length < limits.events)
      this.events.push({
        name,
        timeMs: milliseconds(isTime ? attributesOrTime : time),
        attributes: isTime ? {} : attributesOrTime,
      });
    return this;
  }

  recordException(error: unknown): void {
    const { name, message, stack } =
      error instanceof Error ? error : { name: "Error", message: String(error), stack: "" };
    this.addEvent("exception", {
      "exception.type": name,
      "exception.message": message,
      "exception.stacktrace": stack ?? "",
    });
  }

  setStatus(status: { code: number; message?: string }): this {
    if (this.isRecording()) this.status = status;
    return this;
  }

  updateName(name: string): this {
    if (this.isRecording()) this.name = name;
    return this;
  }

  addLink(): this {
    return this;
  }

  addLinks(): this {
    return this;
  }

  end(time?: Time): void {
    if (this.endMs !== undefined) return;
    this.endMs = milliseconds(time);
    this.#onEnd?.(this);
  }
}

function isTimeObject(value: object): value is Date | [number, number] {
  return value instanceof Date || Array.isArray(value);
}

function milliseconds(time: Time | undefined): number {
  if (time === undefined) return now();
  if (Array.isArray(time)) return time[0] * 1000 + time[1] / 1e6;
  return time instanceof Date ? time.getTime() : time;
}

const epochMs = performance.timeOrigin + performance.now() - monotonicMs();

/** Milliseconds since 1970, of a clock that is never set back. */
export function now(): number {
  return epochTime(monotonicMs());
}

/** The same of a moment by `monotonicMs`. */
export function epochTime(ms: number): number {
  return epochMs + ms;
}
