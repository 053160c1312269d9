/** A webhook that both servers can reach: what it answers is said in its path, so that a case is all in its steps. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type ServerResponse } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

interface Review {
  apiVersion: string;
  kind: string;
  request: { uid: string } & Record<string, unknown>;
}

/** `/respond/<base64url of JSON>`: that response. Members of `raw` replace those of the whole answer. */
export interface Answer {
  response?: Record<string, unknown>;
  raw?: Record<string, unknown>;
  status?: number;
  text?: string;
  delayMs?: number;
  /** The refusal quotes the request, without what differs from call to call. */
  echo?: boolean;
}

const directory = mkdtempSync(path.join(tmpdir(), "webhook-"));
const file = (name: string) => path.join(directory, name);
execFileSync(
  "openssl",
  [
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=webhook",
    "-addext",
    "subjectAltName=IP:127.0.0.1",
    "-keyout",
    file("key"),
    "-out",
    file("crt"),
  ],
  { stdio: "ignore" },
);
const key = readFileSync(file("key"));
const cert = readFileSync(file("crt"));
rmSync(directory, { recursive: true });

const server = createServer({ key, cert }, (request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const encoded = (request.url ?? "").split("?")[0]?.split("/").at(-1) ?? "";
    const answer = JSON.parse(Buffer.from(encoded, "base64url").toString()) as Answer;
    const review = JSON.parse(Buffer.concat(chunks).toString()) as Review;
    if (review.kind === "ConversionReview") return response.end(converted(review, answer));
    void respond(review, answer, response);
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
// The process may end while it listens.
server.unref();

async function respond(review: Review, answer: Answer, response: ServerResponse): Promise<void> {
  if (answer.delayMs) await sleep(answer.delayMs);
  response.writeHead(answer.status ?? 200, { "content-type": "application/json" });
  response.end(textOf(review, answer));
}

function textOf({ apiVersion, kind, request }: Review, answer: Answer): string {
  if (answer.text !== undefined) return answer.text;
  const { uid, ...rest } = request;
  const refused = { allowed: false, status: { message: JSON.stringify(stable(rest)) } };
  const response = { uid, ...(answer.echo ? refused : answer.response) };
  return JSON.stringify({ apiVersion, kind, response, ...answer.raw });
}

interface Convertible {
  apiVersion: string;
  metadata: Record<string, unknown>;
  spec?: Record<string, unknown>;
}

/** `spec.size` of v1 is `spec.length` of v2; what went wrong is said by the answer. */
function converted({ apiVersion, kind, request }: Review, answer: Answer): string {
  const { uid, desiredAPIVersion, objects } = request as unknown as {
    uid: string;
    desiredAPIVersion: string;
    objects: Convertible[];
  };
  const convertedObjects = objects.map((object) => {
    const value = object.spec?.["size"] ?? object.spec?.["length"];
    const name = desiredAPIVersion.endsWith("/v2") ? "length" : "size";
    const annotations = { ...(object.metadata["annotations"] as object), converted: "yes" };
    const metadata = { ...object.metadata, annotations, ...answer.raw };
    return {
      ...object,
      apiVersion: desiredAPIVersion,
      metadata,
      spec: value === undefined ? {} : { [name]: value },
    };
  });
  const response = { uid, result: { status: "Success" }, convertedObjects, ...answer.response };
  return JSON.stringify({ apiVersion, kind, response });
}

const changing = new Set(["managedFields", "resourceVersion", "userInfo"]);

/** Members in order, without those that no two servers have in common. */
function stable(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(stable);
  const entries = Object.entries(value).filter(([name]) => !changing.has(name));
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, each]) => [name, stable(each)]),
  );
}

export function clientConfig(answer: Answer): { url: string; caBundle: string } {
  const { port } = server.address() as AddressInfo;
  const encoded = Buffer.from(JSON.stringify(answer)).toString("base64url");
  return { url: `https://127.0.0.1:${port}/respond/${encoded}`, caBundle: cert.toString("base64") };
}
