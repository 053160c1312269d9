import {
  type Function,
  functions,
  functionsV1alpha1,
  type FunctionV1alpha1,
  gitRepositories,
  repositoryNameOf,
  toV1alpha1,
  toV1alpha2,
} from "@spry/function";
import {
  apiVersionOf,
  type CustomResourceDefinition,
  isNotFound,
  type KubeClient,
  type KubeObject,
  messageOf,
} from "@spry/kube";
import { type WebhookLocation, webhookClientConfig } from "./admission-configurations.ts";

export const conversionPath = "/convert";

/** `apiextensions.k8s.io/v1 ConversionReview`, as far as it is needed. */
interface ConversionReview {
  request?: { uid: string; desiredAPIVersion: string; objects: KubeObject[] };
}

const reviewKind = { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview" };
const current = apiVersionOf(functions);
const older = apiVersionOf(functionsV1alpha1);

/**
 * Converts the Functions of a ConversionReview between v1alpha1 and v1alpha2. GitRepositories that v1alpha1 Functions
 * name are read from the cluster; without one the conversion fails, and says which is missing.
 */
export async function convertFunctions(
  client: KubeClient,
  body: unknown,
): Promise<object | undefined> {
  const { request } = (body ?? {}) as ConversionReview;
  if (typeof request?.uid !== "string" || !Array.isArray(request.objects)) return undefined;
  const { uid, desiredAPIVersion, objects } = request;
  try {
    const converted: KubeObject[] = [];
    for (const object of objects) converted.push(await convert(client, object, desiredAPIVersion));
    const result = { status: "Success" };
    return { ...reviewKind, response: { uid, convertedObjects: converted, result } };
  } catch (error) {
    const result = { status: "Failure", message: messageOf(error) };
    return { ...reviewKind, response: { uid, result } };
  }
}

async function convert(client: KubeClient, object: KubeObject, to: string): Promise<KubeObject> {
  if (object.apiVersion === to) return object;
  if (object.apiVersion === current && to === older) return toV1alpha1(object as Function);
  if (object.apiVersion !== older || to !== current) {
    throw new Error(`converting a Function from ${object.apiVersion} to ${to} is not supported`);
  }
  const old = object as FunctionV1alpha1;
  const name = repositoryNameOf(old);
  if (name === undefined) return toV1alpha2(old);
  const { namespace } = old.metadata;
  const repository = await client
    .get(gitRepositories, { namespace, name })
    .catch((error: unknown) => {
      if (isNotFound(error)) throw new Error(`GitRepository ${namespace}/${name} does not exist`);
      throw error;
    });
  return toV1alpha2(old, repository);
}

/** What is added to the definition of Functions, as a manager of its own, so that API servers ask for conversions. */
export function conversionConfiguration(location: WebhookLocation): CustomResourceDefinition {
  const conversion = {
    strategy: "Webhook",
    webhook: {
      clientConfig: webhookClientConfig(location, conversionPath),
      conversionReviewVersions: ["v1"],
    },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${functions.plural}.${functions.group}` },
    spec: { conversion },
  } as unknown as CustomResourceDefinition;
}
