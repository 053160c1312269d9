import { type Condition, type EndpointSlice, messageOf, type Service } from "@spry/kube";
import { slicesOf } from "../admission/webhooks/service-address.ts";
import { goNetworkError } from "../admission/webhooks/network-errors.ts";
import { type ApiServiceSpec } from "../kinds/api-service/api-service.ts";
import { type Store } from "../store/store.ts";
import { type ApiResource, resourcesOf } from "./aggregated-version.ts";
import { type Backend } from "./backend.ts";
import { identityHeaders } from "./identity-headers.ts";
import { openApiHashIn } from "./open-api-hash.ts";

const timeoutMs = 5_000;
const maxDocumentBytes = 4 * 1024 * 1024;
/** As kube-apiserver presents itself when it checks. */
const checker = { name: "system:kube-aggregator", groups: ["system:masters"] };

export interface Finding {
  condition: Condition;
  resources?: ApiResource[];
  /** Of its OpenAPI document, if it has one. */
  openApiHash?: string | undefined;
}

/** Whether the Service of an APIService can be asked, and what it serves (`kube-aggregator/pkg/controllers/status/remote`). */
export async function findAvailability(
  store: Store,
  spec: ApiServiceSpec,
  backend: Backend,
): Promise<Finding> {
  const problem = problemOfService(store, spec);
  if (problem) return failed(...problem);
  const url = `/apis/${spec.group}/${spec.version}`;
  try {
    const text = await documentOf(backend, url);
    const condition = available("Passed", "all checks passed");
    const resources = resourcesOf(text);
    return { condition, resources, openApiHash: await openApiHashOf(backend, url) };
  } catch (error) {
    const { namespace, name, port } = spec.service ?? {};
    const place = `https://${name}.${namespace}.svc:${port}${url}`;
    const why = error instanceof SyntaxError ? messageOf(error) : goNetworkError(error);
    return failed("FailedDiscoveryCheck", `failing or missing response from ${place}: ${why}`);
  }
}

/** A server without OpenAPI is as good as any other: clients do without its schemas. */
async function openApiHashOf(backend: Backend, url: string): Promise<string | undefined> {
  try {
    return openApiHashIn(await documentOf(backend, "/openapi/v3"), url.slice(1));
  } catch {
    return undefined;
  }
}

export function available(reason: string, message: string): Condition {
  return { type: "Available", status: "True", reason, message };
}

function failed(reason: string, message: string): Finding {
  return { condition: { type: "Available", status: "False", reason, message } };
}

type Problem = [reason: string, message: string];

function problemOfService(store: Store, { service }: ApiServiceSpec): Problem | undefined {
  const { namespace = "", name = "", port = 0 } = service ?? {};
  const shown = `service/${name} in ${JSON.stringify(namespace)}`;
  const found = store.get({ collection: "/services", namespace, name })?.object as
    | Service
    | undefined;
  if (!found) return ["ServiceNotFound", `${shown} is not present`];
  if (found.spec?.type === "ExternalName")
    return ["ServiceAccessError", `${shown} is an ExternalName: only Services with endpoints`];
  const wanted = found.spec?.ports?.find((each) => each.port === port);
  if (!wanted) return ["ServicePortError", `${shown} is not listening on port ${port}`];
  const slices = slicesOf(store, namespace, name);
  if (slices.length === 0) return ["EndpointsNotFound", `cannot find endpointslices for ${shown}`];
  const portName = wanted.name ?? "";
  if (slices.some((slice) => hasReady(slice, portName))) return undefined;
  const message = `endpointslices for ${shown} have no addresses with port name ${JSON.stringify(portName)}`;
  return ["MissingEndpoints", message];
}

function hasReady({ endpoints, ports }: EndpointSlice, portName: string): boolean {
  return (
    (endpoints ?? []).some(({ conditions }) => conditions?.ready !== false) &&
    (ports ?? []).some(({ name, port }) => (name ?? "") === portName && port != null)
  );
}

function documentOf(backend: Backend, path: string): Promise<string> {
  const signal = AbortSignal.timeout(timeoutMs);
  return new Promise((resolve, reject) => {
    const headers = {
      ...identityHeaders(checker),
      accept: "application/json",
      "user-agent": "spry-apiserver",
    };
    const outgoing = { method: "GET", path, headers, signal, isRepeatable: true };
    const sent = backend.request(outgoing);
    sent.on("error", (error) => {
      reject(signal.aborted ? new Error(`no answer within ${timeoutMs / 1000} s`) : error);
    });
    sent.on("response", (response) => {
      const { statusCode: status = 0 } = response;
      const chunks: Buffer[] = [];
      let size = 0;
      response.on("data", (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size > maxDocumentBytes)
          sent.destroy(new Error(`the answer is larger than ${maxDocumentBytes} bytes`));
      });
      response.on("error", reject);
      response.on("end", () => {
        if (status >= 200 && status < 300) resolve(Buffer.concat(chunks).toString());
        else reject(new Error(`bad status: ${status}`));
      });
    });
    sent.end();
  });
}
