/** OTLP's messages (opentelemetry-proto 1.x, `collector/trace/v1` and `trace/v1`), as protobuf has them. */
import { ProtobufWriter } from "./protobuf-writer.ts";
import { type Span } from "./span.ts";
import { idBytes } from "./trace-context.ts";

const writer = new ProtobufWriter();
const request = { resourceSpans: 1 } as const;
const resourceSpans = { resource: 1, scopeSpans: 2 } as const;
const resource = { attributes: 1 } as const;
const scopeSpans = { scope: 1, spans: 2 } as const;
const scope = { name: 1 } as const;
const fields = {
  traceId: 1,
  spanId: 2,
  traceState: 3,
  parentSpanId: 4,
  name: 5,
  kind: 6,
  start: 7,
  end: 8,
  attributes: 9,
  events: 11,
  status: 15,
} as const;
const event = { time: 1, name: 2, attributes: 3 } as const;
const spanStatus = { message: 2, code: 3 } as const;
const keyValue = { key: 1, value: 2 } as const;
const anyValue = { string: 1, bool: 2, int: 3, double: 4, array: 5 } as const;
const array = { values: 1 } as const;

const scopeName = "io.kyma-project.serverless";

/** What an `ExportTraceServiceRequest` has before so many bytes of spans' fields. */
export function requestHead(serviceName: string, spanBytes: number): Uint8Array {
  // Lengths stand before what they count: it is written from within.
  const ofScope = written(() =>
    writer.message(scopeSpans.scope, () => writer.text(scope.name, scopeName)),
  );
  const ofResource = written(() => {
    writer.message(resourceSpans.resource, () =>
      writeAttributes(resource.attributes, { "service.name": serviceName }),
    );
    writer.prefix(resourceSpans.scopeSpans, ofScope.length + spanBytes);
  });
  const size = ofResource.length + ofScope.length + spanBytes;
  const ofRequest = written(() => writer.prefix(request.resourceSpans, size));
  return Buffer.concat([ofRequest, ofResource, ofScope]);
}

/** A span as one of the fields of a `ScopeSpans`; of use until the next is asked for. */
export function spanField(span: Span): Uint8Array {
  const { traceId, spanId, tracestate } = span.spanContext();
  const { parentSpanId, startMs, endMs = startMs } = span;
  return writer.write(() =>
    writer.message(scopeSpans.spans, () => {
      writer.bytes(fields.traceId, Buffer.from(traceId, "hex"));
      writer.bytes(fields.spanId, Buffer.from(spanId, "hex"));
      if (tracestate) writer.text(fields.traceState, tracestate);
      if (parentSpanId) writer.bytes(fields.parentSpanId, Buffer.from(parentSpanId, "hex"));
      writer.time(fields.start, startMs);
      writer.time(fields.end, endMs);
      writeDescription(span);
    }),
  );
}

/** A span's field with zeros for what distinguishes it from others, and where those are. */
export interface BlankSpan {
  bytes: Uint8Array;
  places: { traceId: number; spanId: number; parentSpanId: number; start: number; end: number };
  /** Of the request's id, which stands last among what changes; undefined where it has none. */
  requestId: number | undefined;
}

/** `id` stands for the request's in `description`. */
export function blankSpan(
  description: Description,
  hasParent: boolean,
  id: string | undefined,
): BlankSpan {
  const places = { traceId: 0, spanId: 0, parentSpanId: 0, start: 0, end: 0 };
  let end = 0;
  const bytes = written(() =>
    writer.message(scopeSpans.spans, () => {
      places.traceId = writer.bytes(fields.traceId, new Uint8Array(idBytes.trace));
      places.spanId = writer.bytes(fields.spanId, new Uint8Array(idBytes.span));
      if (hasParent)
        places.parentSpanId = writer.bytes(fields.parentSpanId, new Uint8Array(idBytes.span));
      places.start = writer.time(fields.start, 0);
      places.end = writer.time(fields.end, 0);
      writeDescription(description);
      end = writer.length;
    }),
  );
  // What its length has moved all by.
  const moved = bytes.length - end;
  for (const name of Object.keys(places) as (keyof typeof places)[]) places[name] += moved;
  const requestId = id === undefined ? undefined : Buffer.from(bytes).indexOf(id);
  return { bytes, places, requestId };
}

/** For longer than until the next is written. */
function written(write: () => void): Uint8Array {
  return Buffer.from(writer.write(write));
}

/** What happened, not when and to whom. */
export type Description = Pick<Span, "name" | "kind" | "attributes" | "events" | "status">;

function writeDescription({ name, kind, attributes, events, status }: Description): void {
  writer.text(fields.name, name);
  writer.integer(fields.kind, kind);
  writeAttributes(fields.attributes, attributes);
  for (const each of events)
    writer.message(fields.events, () => {
      writer.time(event.time, each.timeMs);
      writer.text(event.name, each.name);
      writeAttributes(event.attributes, each.attributes);
    });
  if (status.code === 0) return;
  writer.message(fields.status, () => {
    if (status.message !== undefined) writer.text(spanStatus.message, status.message);
    writer.integer(spanStatus.code, status.code);
  });
}

function writeAttributes(field: number, attributes: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(attributes))
    writer.message(field, () => {
      writer.text(keyValue.key, key);
      writer.message(keyValue.value, () => writeValue(value));
    });
}

function writeValue(value: unknown): void {
  if (!Array.isArray(value)) return writeSingle(value);
  writer.message(anyValue.array, () => {
    for (const each of value) writer.message(array.values, () => writeSingle(each));
  });
}

function writeSingle(value: unknown): void {
  if (typeof value === "boolean") writer.integer(anyValue.bool, Number(value));
  else if (typeof value !== "number") writer.text(anyValue.string, textOf(value));
  else if (Number.isSafeInteger(value)) writer.int64(anyValue.int, value);
  else writer.double(anyValue.double, value);
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    return "(it has no text)";
  }
}
