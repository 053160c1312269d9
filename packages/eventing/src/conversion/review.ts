import { type KubeObject, messageOf, readReviewBody, webhookProblem } from "@spry/kube";
import { conversionPath } from "../definitions/ensure-definitions.ts";
import { convertSubscription } from "./convert.ts";

/** `apiextensions.k8s.io/v1 ConversionReview`, as far as it is needed. */
interface ConversionReview {
  request?: { uid?: unknown; desiredAPIVersion?: unknown; objects?: unknown };
}

const reviewKind = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview" };
/** A list is converted in one request. */
const maxLength = 64 * 1024 * 1024;

/** The webhook of Subscriptions. */
export const eventingWebhooks = {
  /** Undefined for any other request. */
  answers(request: Request): Promise<Response> | undefined {
    return new URL(request.url).pathname === conversionPath ? answer(request) : undefined;
  },
};

async function answer(request: Request): Promise<Response> {
  if (request.method !== "POST") return webhookProblem(405, "a review must be sent with POST");
  const body = await readReviewBody(request, maxLength);
  if (body === undefined) return webhookProblem(413, "the request body is too large");
  const { uid, desiredAPIVersion, objects } = parse(body)?.request ?? {};
  if (typeof uid !== "string" || typeof desiredAPIVersion !== "string" || !Array.isArray(objects))
    return webhookProblem(
      400,
      "the request body is not a ConversionReview of apiextensions.k8s.io/v1",
    );
  const convertedObjects: KubeObject[] = [];
  for (const object of objects as KubeObject[]) {
    try {
      convertedObjects.push(convertSubscription(object, desiredAPIVersion));
    } catch (error) {
      const { name, namespace } = object.metadata;
      const message = `Subscription ${namespace}/${name}: ${messageOf(error)}`;
      const result = { status: "Failure", message };
      return Response.json({ ...reviewKind, response: { uid, result } });
    }
  }
  const result = { status: "Success" };
  return Response.json({ ...reviewKind, response: { uid, convertedObjects, result } });
}

function parse(text: string): ConversionReview | undefined {
  try {
    return (JSON.parse(text) as ConversionReview | null) ?? undefined;
  } catch {
    return undefined;
  }
}
