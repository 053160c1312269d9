/** What is sent: heads and bodies that are nearly right, for each of the three servers. */
import * as fc from "fast-check";
import { type RawRequest } from "./raw-exchange.ts";

/** A server's own vocabulary. */
export interface Vocabulary {
  paths: readonly string[];
  queries: readonly string[];
  hosts: readonly string[];
  /** Complete header lines. */
  headers: readonly string[];
  bodies: readonly unknown[];
  types: readonly string[];
  /** Paths with a document that belongs there. */
  fitting: readonly [path: string, document: unknown][];
}

const methods = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.constantFrom("GET", "POST", "POST", "PUT", "PATCH", "DELETE", "HEAD"),
  },
  fc.constantFrom("OPTIONS", "CONNECT", "TRACE", "PRI", "get", "G\0T", ""),
);
const versions = fc.oneof(
  { weight: 15, arbitrary: fc.constant("HTTP/1.1") },
  fc.constantFrom("HTTP/1.0", "HTTP/2.0", "HTTP/1.2", "http/1.1", ""),
);
const odd = fc.constantFrom(
  "..",
  "%2e%2e",
  "%2f",
  "%00",
  "%",
  "%zz",
  "//",
  "",
  ".",
  "~",
  "*",
  "__proto__",
  "constructor",
  "a".repeat(5000),
  "\u00e9",
  "\x7f",
  "-1",
  "0",
  "9223372036854775808",
  "1e309",
  "NaN",
  "${HOME}",
  "{{7*7}}",
  "'\"<script>",
  "sha256:" + "0".repeat(64),
  "\t",
  "a b",
);
/** Any value that JSON can hold, with those that programs stumble over. */
const value = fc.oneof(
  { weight: 3, arbitrary: fc.json({ maxDepth: 4 }).map((text) => JSON.parse(text) as unknown) },
  odd,
  fc.constantFrom(
    null,
    true,
    {},
    [],
    [null],
    { "": {} },
    JSON.parse('{"__proto__":{"a":1}}'),
    1e308,
    -0,
    2 ** 53,
    nested(200),
    "x".repeat(100_000),
  ),
);

function nested(depth: number): unknown {
  return depth === 0 ? 1 : [nested(depth - 1)];
}

/** The same document with one of its nodes replaced, removed or renamed. */
function damaged(document: unknown, at: number, by: unknown, how: number): unknown {
  const copy = structuredClone(document);
  const nodes: { parent: Record<string, unknown>; key: string }[] = [];
  collect(copy, nodes);
  const node = nodes[at % Math.max(1, nodes.length)];
  if (!node) return by;
  const { parent, key } = node;
  if (how % 4 === 0) delete parent[key];
  else if (how % 4 === 1) {
    parent[(JSON.stringify(by) ?? "").slice(0, 300)] = parent[key];
    delete parent[key];
  } else parent[key] = by;
  return copy;
}

function collect(value: unknown, nodes: { parent: Record<string, unknown>; key: string }[]): void {
  if (typeof value !== "object" || value === null) return;
  const parent = value as Record<string, unknown>;
  for (const key of Object.keys(parent)) {
    nodes.push({ parent, key });
    collect(parent[key], nodes);
  }
}

const oddFramings = [
  "content-length: {length}",
  "content-length: {length}",
  "content-length: {length}",
  "transfer-encoding: chunked",
  "content-length: 99999999999999999999",
  "content-length: -1",
  "content-length: {length}\r\ncontent-length: 0",
  "transfer-encoding: chunked\r\ncontent-length: {length}",
  "transfer-encoding: gzip, chunked",
  "transfer-encoding: chunked, identity",
  "",
  "content-length: {length}\r\nexpect: 100-continue",
  "content-length: 0x10",
  "transfer-encoding:\tchunked",
  "content-length: {length} ",
];
const framings = fc.oneof(
  { weight: 5, arbitrary: fc.constant("content-length: {length}") },
  fc.constantFrom(...oddFramings),
);
const others = [
  "connection: close",
  "connection: keep-alive, upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
  "connection: upgrade\r\nupgrade: SPDY/3.1",
  "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAARAAAAAAAIAAAAA",
  "upgrade: evil",
  "range: bytes=0-",
  "range: bytes=-1,0-0,5-2",
  "content-range: bytes 5-1/*",
  "content-range: 0-99999999999",
  "if-none-match: *",
  "accept-encoding: gzip, br;q=0",
  "accept: application/json;as=Table;v=v1;g=meta.k8s.io",
  "accept: application/vnd.kubernetes.protobuf",
  "accept: */*;q=x",
  "content-encoding: gzip",
  "x-forwarded-for: 127.0.0.1",
  "x-forwarded-host: evil",
  "forwarded: for=_x;host=evil",
  "traceparent: 00-0-0-00",
  "authorization: Basic ====",
  "authorization: Bearer a.b.c",
  "impersonate-user: system:admin",
  "cookie: a=b; c",
  `x-long: ${"h".repeat(20_000)}`,
  "x-\0: 1",
  "x: a\rb",
  " folded: 1",
  "no-colon",
  "origin: null",
  "prefer: respond-async",
  "priority: u=0",
  "transfer-encoding: chunked",
];

export function requestsTo(words: Vocabulary): fc.Arbitrary<RawRequest> {
  const path = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...words.paths) },
    fc.tuple(fc.constantFrom(...words.paths), fc.nat(8), odd).map(([each, at, by]) => {
      const parts = each.split("/");
      parts[at % parts.length] = by;
      return parts.join("/");
    }),
    odd,
    fc.constantFrom(...words.paths).map((each) => `http://evil.example${each}`),
  );
  const query = fc.oneof(
    { weight: 2, arbitrary: fc.constant("") },
    fc
      .array(fc.constantFrom(...words.queries), { minLength: 1, maxLength: 3 })
      .map((parts) => `?${parts.join("&")}`),
    fc
      .tuple(fc.constantFrom(...words.queries), odd)
      .map(([each, by]) => `?${each.replace(/=.*/, "=")}${by}`),
  );
  const json = fc
    .tuple(fc.constantFrom(...words.bodies), fc.nat(500), value, fc.nat(3), fc.boolean())
    .map(
      ([document, at, by, how, whole]) =>
        JSON.stringify(whole ? document : damaged(document, at, by, how)) ?? "",
    );
  const body = fc.oneof(
    { weight: 4, arbitrary: json },
    fc
      .tuple(json, fc.nat(2000), fc.string({ unit: "binary", maxLength: 12 }))
      .map(([text, at, by]) => text.slice(0, at) + by + text.slice(at + by.length)),
    fc.constantFrom(
      "",
      "[".repeat(20_000),
      '{"a":'.repeat(5000),
      "\0".repeat(100),
      "a: &a [*a, *a]",
      "x".repeat(200_000),
    ),
    fc.string({ unit: "binary", maxLength: 300 }),
  );
  const headers = fc.oneof(
    { weight: 2, arbitrary: fc.array(fc.constantFrom(...words.headers), { maxLength: 2 }) },
    fc.array(fc.constantFrom(...words.headers, ...others), { maxLength: 4 }),
  );
  const anything = fc.record({ path, body });
  const fitting = fc
    .tuple(fc.constantFrom(...words.fitting), fc.nat(500), value, fc.nat(3), fc.nat(2))
    .map(([[at, document], node, by, how, whole]) => ({
      path: at,
      body: JSON.stringify(whole === 0 ? document : damaged(document, node, by, how)) ?? "",
    }));
  return fc
    .record({
      method: methods,
      place: fc.oneof(anything, fitting),
      query,
      version: versions,
      host: fc.constantFrom(...words.hosts),
      type: fc.constantFrom(...words.types),
      headers,
      framing: framings,
      cuts: fc.array(fc.nat(4000), { maxLength: 3 }),
      leaves: fc.oneof({ weight: 15, arbitrary: fc.constant(undefined) }, fc.nat(3000)),
    })
    .map(
      ({ method, place, query: asked, version, host, type, headers: more, framing, ...rest }) => {
        const content = Buffer.from(place.body);
        const lines = [
          `${method} ${place.path}${asked} ${version}`,
          ...(host === "" ? [] : [`host: ${host}`]),
          ...(type === "" ? [] : [`content-type: ${type}`]),
          ...more,
          ...(framing === "" ? [] : [framing.replaceAll("{length}", String(content.length))]),
        ];
        const size = Buffer.from(`${content.length.toString(16)}\r\n`);
        const chunks = Buffer.concat([size, content, Buffer.from("\r\n0\r\n\r\n")]);
        const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
        const bytes = Buffer.concat([head, framing.includes("chunked") ? chunks : content]);
        const { cuts, leaves } = rest;
        return { bytes, cuts, ...(leaves === undefined ? {} : { leavesAfter: leaves }) };
      },
    );
}
