import { gzipSync } from "node:zlib";
import { type Step } from "./exchange.ts";
import { type Random } from "./random.ts";

/** Requests of one kind: what a client with bad intentions, or none at all, puts on the wire. */
export type Family = (random: Random) => Step[];

export const maps = "/api/v1/namespaces/default/configmaps";
const json = "application/json";
const object = (rest = "") =>
  `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fuzz","labels":{"a":"b"}},"data":{"key":"value"}${rest}}`;

interface Parts {
  method?: string;
  path?: string;
  headers?: readonly (readonly [name: string, value: string])[];
  body?: string | Buffer;
  /** What Content-Length says, when it is not the truth. */
  length?: string;
}

/** A request as bytes, on a connection that ends with its answer unless a header says otherwise. */
export function written({
  method = "POST",
  path = maps,
  headers = [],
  body = "",
  length,
}: Parts): Buffer {
  const bytes = Buffer.from(body);
  const isKept = headers.some(([name]) => name === "connection");
  const own = [["host", "kubernetes"], ...(isKept ? [] : [["connection", "close"]]), ...headers];
  if (bytes.length > 0 || length !== undefined)
    own.push(["content-length", length ?? String(bytes.length)]);
  const lines = own.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return Buffer.concat([
    Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines}\r\n`, "latin1"),
    bytes,
  ]);
}

export const typed = (type: string) => [["content-type", type]] as const;
export const nested = (levels: number, open = '{"a":', close = "}") =>
  `${open.repeat(levels)}1${close.repeat(levels)}`;
const limit = 3 * 1024 * 1024;

const bodies: Family = (random) => {
  const levels = random.one([200, 255, 256, 300, 5000, 400_000]);
  const body = random.one<() => string | Buffer>([
    () => random.damaged(Buffer.from(object())),
    () => random.damaged(Buffer.from(object())),
    () => object(`,"data":${nested(levels)}`),
    () => nested(levels, "[", "]"),
    () => "[".repeat(levels),
    () => object(`,"binaryData":{"a":"${"A".repeat(limit - 400 + random.below(800))}"}`),
    () => object(`,"metadata":{"name":"fuzz","labels":{${Array.from({ length: 20_000 }, (_, i) => `"k${i}":"v"`).join()}}}`),
    () => object(`,"metadata":{"name":"fuzz","managedFields":[{"manager":"m","operation":"${random.one(["Apply", "Update", "x"])}","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":${random.one(['{"f:data":{"k:{":{}}}', '{"f:data":1}', '{"v:1":{}}', '{".":{".":[]}}', nested(100, '{"f:a":')])}}]}`),
    () => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"fuzz"},"data":{"\\u005f_proto__":"x","constructor":{"prototype":1}}}`,
    () => object().replace("value", random.one(["\\ud800", "\u0000", "\\u0000", "\\x", "\uffff"])),
    () => Buffer.concat([Buffer.from(object()), random.bytes(20)]),
    () => random.one(["null", "1e999", "-", '"', "{}", "[]", "tru", "\ufeff{}", " \n", "NaN"]),
    () => Buffer.from(object(), "utf16le"),
  ])(); // prettier-ignore
  const type = random.one([json, json, `${json}; charset=utf-16`, `${json};;;`, "application/yaml", "text/plain", "", ",", "a/b/c"]); // prettier-ignore
  const method = random.one(["POST", "POST", "PUT", "PATCH", "DELETE"]);
  return [written({ method, path: method === "POST" ? maps : `${maps}/fuzz`, headers: typed(type), body })]; // prettier-ignore
};

const yaml: Family = (random) => {
  const count = random.one([10, 1000, 40_000]);
  const body = random.one([
    "- ".repeat(count),
    "? ".repeat(count),
    "a: &a [1]\n".repeat(count),
    "!!js/function 'x'\n".repeat(count),
    `a: &a {<<: *a}`,
    `&a [*a]`,
    `&a {b: *a}`,
    "{".repeat(count),
    "a: |\n".repeat(count),
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fuzz}\n${Array.from({ length: count }, (_, i) => `k${i}: &k${i} x\n`).join("")}`,
    `--- \n...\n`.repeat(count),
    `"${"\\x".repeat(count)}"`,
    `%YAML 9.9\n---\n1`,
    `%TAG ! ${"!".repeat(count)}\n---\n!<x> 1`,
    `metadata: !!binary ${"A".repeat(count)}\n`,
    `? {a: b}\n: c`,
    "\t".repeat(count),
    "# ".repeat(count),
    `${" ".repeat(count)}a:\n b`,
  ]);
  const apply = random.below(2) === 0;
  const headers = typed(apply ? "application/apply-patch+yaml" : "application/yaml");
  const target = apply
    ? {
        method: "PATCH",
        path: `${maps}/fuzz?fieldManager=f&force=${random.one(["true", "x", ""])}`,
      }
    : {};
  return [written({ ...target, headers, body: random.below(3) ? body : random.damaged(Buffer.from(body)) })]; // prettier-ignore
};

/** `k8s\0`, then `Unknown{typeMeta, raw}` around a ConfigMap. */
function protobufObject(random: Random): Buffer {
  const field = (number: number, content: Buffer) =>
    Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
  const text = (number: number, value: string) => field(number, Buffer.from(value));
  const name = random.one(["fuzz", "p", "__proto__", "\u0000"]);
  const entry = Buffer.concat([text(1, random.one(["key", "__proto__", ""])), text(2, "v")]);
  const fieldsV1 = field(7, text(1, random.one(["{", "[]", "null", nested(3000), '{"f:a":{}}'])));
  const managed = field(17, Buffer.concat([text(1, "m"), text(2, "Update"), text(6, "FieldsV1"), fieldsV1])); // prettier-ignore
  const metadata = field(
    1,
    Buffer.concat([text(1, name), random.below(2) ? managed : Buffer.of()]),
  );
  const raw = Buffer.concat([metadata, field(2, entry)]);
  const typeMeta = field(1, Buffer.concat([text(1, "v1"), text(2, "ConfigMap")]));
  return Buffer.concat([Buffer.from("k8s\0"), typeMeta, field(2, raw)]);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (let left = value; ; left = Math.floor(left / 128)) {
    if (left < 128) return Buffer.from([...bytes, left]);
    bytes.push((left % 128) + 128);
  }
}

const protobuf: Family = (random) => {
  const good = protobufObject(random);
  const body = random.one([
    good,
    random.damaged(good),
    random.damaged(good),
    good.subarray(0, random.below(good.length)),
    Buffer.concat([Buffer.from("k8s\0"), random.bytes(40)]),
    Buffer.concat([Buffer.from("k8s\0"), Buffer.alloc(200_000, 0x0b)]),
    Buffer.concat([good.subarray(0, 4), Buffer.from([0x12]), Buffer.alloc(10, 0xff)]),
  ]);
  const accept = random.one([json, "application/vnd.kubernetes.protobuf"]);
  const headers = [...typed("application/vnd.kubernetes.protobuf"), ["accept", accept] as const];
  const method = random.one(["POST", "PUT", "DELETE"]);
  return [written({ method, path: method === "POST" ? maps : `${maps}/fuzz`, headers, body })];
};

/** 32 MiB in 32 KiB. */
const bomb = gzipSync(Buffer.alloc(32 << 20));

const encodings: Family = (random) => {
  const encoding = random.one(["gzip", "deflate", "br", "identity", "gzip, gzip", "x"]);
  const body = random.one([gzipSync(object()), bomb, object()]);
  return [written({ headers: [...typed(json), ["content-encoding", encoding]], body })];
};

const paths: Family = (random) => {
  const piece = () =>
    random.one(["api", "v1", "apis", "apps", "namespaces", "default", "configmaps", "pods", "..", ".", "", "%00", "%2f", "%2e%2e", "%", "%zz", "%ff", "%c3%28", "\xff\xfe", "a".repeat(300), "watch", "proxy", "status", "scale", "__proto__", "constructor", "hasOwnProperty", "*", ";a=b", "\\", "log", "fuzz", "openapi", "v3", "readyz", "etcd"]); // prettier-ignore
  const start = random.one(["/", "//", "", "*", "http://other.example", "https://kubernetes", "/api/v1/", "/apis/", "/openapi/v3/", maps, "/.well-known/"]); // prettier-ignore
  const path = start + Array.from({ length: random.below(7) }, piece).join("/");
  const value = () =>
    random.one(["", "1", "-1", "0", "9".repeat(30), "1e3", "true", "%", "%00", "%zz", "a%20b", "a in (b", "!", "a=b,".repeat(500), "(".repeat(2000), "a".repeat(8000), "metadata.name=x", "All", "Strict", "NotOlderThan", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoiLi4vIn0", "__proto__", "Foreground", "P1D"]); // prettier-ignore
  const name = () =>
    random.one(["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "resourceVersionMatch", "timeoutSeconds", "allowWatchBookmarks", "sendInitialEvents", "dryRun", "fieldManager", "fieldValidation", "force", "pretty", "gracePeriodSeconds", "propagationPolicy", "orphanDependents", "tailLines", "__proto__", "", "container", "timeout", "verbose", "exclude"]); // prettier-ignore
  const query = Array.from({ length: random.below(6) }, () => `${name()}=${value()}`).join("&");
  const watch = random.below(8) === 0 ? "watch=1&timeoutSeconds=1&" : "";
  const method = random.one(["GET", "GET", "GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "CONNECT", "POST", "PUT", "PATCH", "DELETE", "BREW"]); // prettier-ignore
  const accept = random.one(["*/*", json, "application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v9", ",,,;;;=", "a".repeat(4000), "application/vnd.kubernetes.protobuf"]); // prettier-ignore
  return [written({ method, path: `${path}?${watch}${query}`.replaceAll(" ", "%20"), headers: [["accept", accept]] })]; // prettier-ignore
};

const headerSets: Family = (random) => {
  const headers = random.one<() => [string, string][]>([
    () => Array.from({ length: 3000 }, (_, i) => [`x-${i}`, "v"]),
    () => [["x", "v".repeat(random.one([60_000, 66_000, 500_000]))]],
    () => [["impersonate-user", "a"], ["impersonate-user", "b"]],
    () => [["impersonate-group", "system:masters"]],
    () => [["impersonate-user", ""], ["impersonate-extra-%zz", "v"]],
    () => [["impersonate-user", "u"], ["impersonate-extra-__proto__", "v"], ["impersonate-uid", "\xff"]],
    () => [["authorization", random.one(["Bearer", "Bearer ", "Bearer a.b.c", `Bearer ${"e30.".repeat(3000)}`, "Basic =", "\xff"])]],
    () => [["host", ""], ["host", "b"]],
    () => [["expect", "100-continue"]],
    () => [["expect", "something"]],
    () => [["upgrade", "h2c"], ["connection", "close, Upgrade, HTTP2-Settings"], ["http2-settings", "AA"]],
    () => [["accept-encoding", random.one(["gzip;q=2", "gzip;q=-1", "*;q=0", "br,".repeat(900), ";", "identity;q=0"])]],
    () => [["user-agent", "\xff\x80"], ["content-type", json]],
    () => [["traceparent", "00-zz"], ["audit-id", "../../x"], ["x-remote-user", "system:admin"]],
  ])(); // prettier-ignore
  const method = random.one(["GET", "POST", "DELETE"]);
  return [written({ method, headers, body: method === "POST" ? object() : "" })];
};

const framing: Family = (random) => {
  const body = object();
  const start = `POST ${maps} HTTP/1.1\r\nhost: k\r\ncontent-type: ${json}\r\n`;
  const chunked = `${start}transfer-encoding: chunked\r\n\r\n`;
  const size = body.length.toString(16);
  const pause = { pauseMs: 20 };
  const raw = (text: string): Buffer => Buffer.from(text, "latin1");
  return random.one<() => Step[]>([
    () => [raw(`${chunked}zz\r\n${body}\r\n0\r\n\r\n`)],
    () => [raw(`${chunked}-1\r\n${body}\r\n0\r\n\r\n`)],
    () => [raw(`${chunked}${"f".repeat(20)}\r\n${body}`)],
    () => [raw(`${chunked}${size};${"x".repeat(70_000)}\r\n${body}\r\n0\r\n\r\n`)],
    () => [raw(`${chunked}${size}\r\n${body}`), "half-close"],
    () => [raw(`${chunked}${size}\r\n${body}\r\n`), pause, "reset"],
    () => [raw(`${chunked}0\r\nx-trailer: ${"y".repeat(70_000)}\r\n\r\n`)],
    () => [raw(`${chunked}${size}\r\n${body}XX\r\n0\r\n\r\n`)],
    () => [raw(chunked), ...Array.from(body, (letter) => raw(`1\r\n${letter}\r\n`)), "half-close"],
    () => [raw(`${start}content-length: 5\r\ncontent-length: 6\r\n\r\n${body}`)],
    () => [raw(`${start}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n${body}`)],
    () => [written({ headers: typed(json), body, length: String(body.length + 50) }), "half-close"],
    () => [written({ headers: typed(json), body, length: String(body.length - 5) })],
    () => [written({ headers: typed(json), body, length: random.one(["-1", "1e3", "0x10", "99999999999999999999", "4000000000", ""]) })],
    () => [raw(start), pause, raw("x: y\r"), pause, "reset"],
    () => [raw(`GET /readyz HTTP/1.1\r\nhost: k\r\n\r\n`.repeat(50)), raw(`${start}content-length: 2\r\n\r\n[]`), "half-close"],
    () => [raw(`GET ${maps} HTTP/1.1\r\nhost: k\r\ncontent-length: 4000000\r\n\r\n`), Buffer.alloc(4_000_000), "half-close"],
    () => [raw(`GET /readyz HTTP/0.9\r\n\r\n`)],
    () => [raw(`GET /readyz HTTP/1.0\r\n\r\n`)],
    () => [raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    () => [random.bytes(500)],
    () => [random.damaged(written({ headers: typed(json), body: "[]" }))],
    () => ["half-close"],
    () => [raw(`GET /api/v1/pods?watch=1 HTTP/1.1\r\nhost: k\r\n\r\n`), pause, "half-close"],
  ])(); // prettier-ignore
};

export const requests = { bodies, yaml, protobuf, encodings, paths, headerSets, framing };
