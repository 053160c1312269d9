import { traceHeaders } from "../outgoing-trace.ts";
import { activeContext, type Context, runWith, spanOf } from "./context.ts";
import { type Tracer } from "./tracer.ts";

/** Where every copy of `@opentelemetry/api` 1.x looks for its implementation. */
const globalKey = Symbol.for("opentelemetry.js.api.1");

interface Setter {
  set(carrier: unknown, name: string, value: string): void;
}

/** Makes ours the implementation for code that uses the package, unless there is one already. */
export function provideOpenTelemetry(tracer: Tracer): void {
  const known = globalThis as unknown as Record<symbol, unknown>;
  known[globalKey] ??= {
    // The package requires an implementation that is not older than itself.
    version: "1.99.0",
    trace: { getTracer: () => tracer },
    context: {
      active: activeContext,
      with: (
        context: Context,
        fn: (...args: unknown[]) => unknown,
        self: unknown,
        ...args: unknown[]
      ) => runWith(context, () => fn.apply(self, args)),
      bind: (context: Context, fn: unknown) =>
        typeof fn === "function"
          ? (...args: unknown[]) =>
              runWith(context, () => (fn as (...all: unknown[]) => unknown)(...args))
          : fn,
      enable() {
        return this;
      },
      disable() {
        return this;
      },
    },
    propagation: {
      inject(context: Context, carrier: unknown, setter: Setter) {
        const span = spanOf(context);
        if (!span) return;
        for (const [name, value] of traceHeaders(span.spanContext()))
          setter.set(carrier, name, value);
      },
      extract: (context: Context) => context,
      fields: () => ["traceparent", "tracestate"],
    },
  };
}
