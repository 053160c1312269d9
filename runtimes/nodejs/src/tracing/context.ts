import { AsyncLocalStorage } from "node:async_hooks";
import { type Span } from "./span.ts";

/** By which OpenTelemetry's API finds the span in a context. */
export const spanKey = Symbol.for("OpenTelemetry Context Key SPAN");

/** OpenTelemetry's Context: immutable, each one value more than the one that it was made of. */
export class Context {
  readonly #parent: Context | undefined;
  readonly #key: symbol | undefined;
  readonly #value: unknown;

  constructor(parent?: Context, key?: symbol, value?: unknown) {
    this.#parent = parent;
    this.#key = key;
    this.#value = value;
  }

  getValue(key: symbol): unknown {
    return this.#key === key ? this.#value : this.#parent?.getValue(key);
  }

  setValue(key: symbol, value: unknown): Context {
    return new Context(this, key, value);
  }

  deleteValue(key: symbol): Context {
    return new Context(this, key, undefined);
  }
}

/** With nothing in it. */
export const rootContext = new Context();
const storage = new AsyncLocalStorage<Context>();

export function activeContext(): Context {
  return storage.getStore() ?? rootContext;
}

export function spanOf(context: Context): Span | undefined {
  return context.getValue(spanKey) as Span | undefined;
}

export function withSpan(context: Context, span: Span): Context {
  return context.setValue(spanKey, span);
}

export function runWith<T, A extends unknown[]>(
  context: Context,
  fn: (...args: A) => T,
  ...args: A
): T {
  return storage.run(context, fn, ...args);
}

/** From now on, until what called us has returned: a tenth of what `runWith` costs, whose context ends with it. */
export function enter(context: Context | undefined): void {
  storage.enterWith(context as Context);
}

/** Leaves what another request has entered. */
export function leave(): void {
  if (storage.getStore() !== undefined) enter(undefined);
}
