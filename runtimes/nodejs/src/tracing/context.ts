import { AsyncLocalStorage } from "node:async_hooks";
import { type Span } from "./span.ts";

/** By which OpenTelemetry's API finds the span in a context. */
const spanKey = Symbol.for("OpenTelemetry Context Key SPAN");

/** OpenTelemetry's Context: immutable. */
export class Context {
  readonly #values: ReadonlyMap<symbol, unknown>;

  constructor(values: ReadonlyMap<symbol, unknown> = new Map()) {
    this.#values = values;
  }

  getValue(key: symbol): unknown {
    return this.#values.get(key);
  }

  setValue(key: symbol, value: unknown): Context {
    return new Context(new Map(this.#values).set(key, value));
  }

  deleteValue(key: symbol): Context {
    return new Context(new Map([...this.#values].filter(([each]) => each !== key)));
  }
}

const root = new Context();
const storage = new AsyncLocalStorage<Context>();

export function activeContext(): Context {
  return storage.getStore() ?? root;
}

export function spanOf(context: Context): Span | undefined {
  return context.getValue(spanKey) as Span | undefined;
}

export function withSpan(context: Context, span: Span): Context {
  return context.setValue(spanKey, span);
}

export function runWith<T>(context: Context, fn: () => T): T {
  return storage.run(context, fn);
}
