import { type Condition, type UnknownObject } from "@spry/kube";

/** `apiregistration.k8s.io/v1 APIService`. */
export interface ApiService extends UnknownObject {
  spec: ApiServiceSpec;
  status?: { conditions?: Condition[] };
}

export interface ApiServiceSpec {
  group?: string;
  version?: string;
  groupPriorityMinimum?: number;
  versionPriority?: number;
  /** Who serves the group and version; without it this API server does. */
  service?: ServiceReference;
  /** PEM in base64. */
  caBundle?: string;
  insecureSkipTLSVerify?: boolean;
}

export interface ServiceReference {
  namespace?: string;
  name?: string;
  port?: number;
}

export const apiServices = "apiregistration.k8s.io/apiservices";
export const defaultServicePort = 443;

/** Of the `Available` condition; undefined when nothing has been found out yet. */
export function availabilityOf({ status }: ApiService): Condition | undefined {
  return status?.conditions?.find(({ type }) => type === "Available");
}
