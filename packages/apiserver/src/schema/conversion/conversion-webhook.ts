import { randomUUID } from "node:crypto";
import { type ObjectMeta, type UnknownObject } from "@spry/kube";
import { ownMessageOf } from "../../errors.ts";
import { type ConversionWebhook } from "../../resources/webhook-client.ts";
import { type WebhookConnections } from "../../admission/webhooks/webhook-connections.ts";
import { parseJson } from "../../json.ts";

interface ConversionReview {
  apiVersion?: string;
  kind?: string;
  response?: {
    uid?: string;
    result?: { status?: string; message?: string };
    convertedObjects?: UnknownObject[];
  };
}

const timeoutSeconds = 30;
/** Objects in one call; a collection of thousands is converted in several. */
const maxObjects = 500;

/**
 * The objects in another version, in their order (`apiextensions-apiserver/pkg/apiserver/conversion`). The
 * webhook changes nothing of an object's metadata but labels and annotations. Rejects with an Error.
 */
export async function convertByWebhook(
  connections: WebhookConnections,
  webhook: ConversionWebhook,
  objects: UnknownObject[],
  apiVersion: string,
): Promise<UnknownObject[]> {
  const converted: UnknownObject[] = [];
  for (let start = 0; start < objects.length; start += maxObjects) {
    const some = objects.slice(start, start + maxObjects);
    converted.push(...(await call(connections, webhook, some, apiVersion)));
  }
  return converted;
}

async function call(
  connections: WebhookConnections,
  webhook: ConversionWebhook,
  objects: UnknownObject[],
  apiVersion: string,
): Promise<UnknownObject[]> {
  const [first] = objects;
  const what = `conversion webhook for ${first?.apiVersion}, Kind=${first?.kind}`;
  const version = webhook.conversionReviewVersions.find((each) => /^v1(?:beta1)?$/.test(each));
  if (!version) throw new Error("no supported conversion review versions");
  const review = { kind: "ConversionReview", apiVersion: `apiextensions.k8s.io/${version}` };
  const uid = randomUUID();
  const request = { uid, desiredAPIVersion: apiVersion, objects };
  let results: UnknownObject[];
  try {
    const body = JSON.stringify({ ...review, request });
    const answer = await connections.post(webhook.clientConfig, body, timeoutSeconds);
    results = convertedIn(parseJson(answer) as ConversionReview, review, uid);
  } catch (cause) {
    throw new Error(`${what} failed: ${ownMessageOf(cause)}`, { cause });
  }
  if (results.length !== objects.length) {
    throw new Error(`${what} returned ${results.length} objects, expected ${objects.length}`);
  }
  return objects.map((object, index) => {
    const result = results[index];
    const invalid = `${what} returned invalid object${objects.length > 1 ? ` at index ${index}` : ""}: `;
    if (!result?.metadata) throw new Error(`${invalid}missing metadata in converted object`);
    const problem = problemOf(object, result, apiVersion);
    if (problem) throw new Error(`${invalid}${problem}`);
    return { ...result, metadata: restored(object.metadata, result.metadata) };
  });
}

function convertedIn(
  { apiVersion = "", kind = "", response }: ConversionReview,
  review: { apiVersion: string; kind: string },
  uid: string,
): UnknownObject[] {
  if (apiVersion !== review.apiVersion || kind !== review.kind) {
    throw new Error(
      `expected webhook response of ${review.apiVersion}, Kind=${review.kind}, got ${apiVersion.includes("/") ? apiVersion : `/${apiVersion}`}, Kind=${kind}`,
    );
  }
  if (!response) throw new Error("no response provided");
  if (response.uid !== uid) {
    const got = JSON.stringify(response.uid ?? "");
    throw new Error(`expected response.uid=${JSON.stringify(uid)}, got ${got}`);
  }
  const { status = "", message } = response.result ?? {};
  if (status !== "Success") {
    throw new Error(message || `response.result.status was '${status}', not 'Success'`);
  }
  return response.convertedObjects ?? [];
}

function problemOf(
  object: UnknownObject,
  result: UnknownObject,
  apiVersion: string,
): string | undefined {
  if (result.apiVersion !== apiVersion) {
    return `invalid groupVersion (expected ${apiVersion}, received ${result.apiVersion ?? ""})`;
  }
  if (result.kind !== object.kind) {
    return `invalid kind (expected ${object.kind}, received ${result.kind ?? ""})`;
  }
  const names = { name: "name", namespace: "namespace", uid: "UID" } as const;
  for (const [field, name] of Object.entries(names) as [keyof typeof names, string][]) {
    const [before, after] = [object.metadata[field] ?? "", result.metadata[field] ?? ""];
    if (before !== after) return `must have the same ${name}: ${before} != ${after}`;
  }
  return undefined;
}

function restored(before: ObjectMeta, after: ObjectMeta): ObjectMeta {
  const { labels: _, annotations: __, ...rest } = before;
  return {
    ...rest,
    ...(after.labels && { labels: after.labels }),
    ...(after.annotations && { annotations: after.annotations }),
  };
}
