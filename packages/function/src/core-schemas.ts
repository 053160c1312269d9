/**
 * Structural schemas of the parts of core/v1 that a Function's spec contains: what an API server
 * needs to keep, default-free, every field that a Pod would take.
 */
export interface Schema {
  type?: "object" | "array" | "string" | "integer" | "boolean" | "number";
  format?: string;
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema;
  items?: Schema;
  required?: string[];
  enum?: (string | number)[];
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  maxItems?: number;
  maxProperties?: number;
  pattern?: string;
  anyOf?: Schema[];
  "x-kubernetes-int-or-string"?: boolean;
  "x-kubernetes-list-type"?: "atomic" | "set" | "map";
  "x-kubernetes-list-map-keys"?: string[];
  "x-kubernetes-map-type"?: "atomic" | "granular";
  "x-kubernetes-validations"?: { rule: string; message: string }[];
}

export const string: Schema = { type: "string" };
export const boolean: Schema = { type: "boolean" };
export const int32: Schema = { type: "integer", format: "int32" };
export const int64: Schema = { type: "integer", format: "int64" };
export const stringMap: Schema = { type: "object", additionalProperties: string };

export function object(properties: Record<string, Schema>, required: string[] = []): Schema {
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

export function list(items: Schema): Schema {
  return { type: "array", items };
}

const atomicList = (items: Schema): Schema => ({
  ...list(items),
  "x-kubernetes-list-type": "atomic",
});

const selector = (properties: Record<string, Schema>, required: string[]): Schema => ({
  ...object(properties, required),
  "x-kubernetes-map-type": "atomic",
});

const quantity: Schema = {
  anyOf: [{ type: "integer" }, { type: "string" }],
  pattern:
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
  "x-kubernetes-int-or-string": true,
};

const keySelector = selector({ key: string, name: { ...string, default: "" }, optional: boolean }, [
  "key",
]);

export const envVar: Schema = object(
  {
    name: { ...string, maxLength: 1024 },
    value: string,
    valueFrom: object({
      configMapKeyRef: keySelector,
      secretKeyRef: keySelector,
      fieldRef: selector({ apiVersion: string, fieldPath: string }, ["fieldPath"]),
      resourceFieldRef: selector({ containerName: string, divisor: quantity, resource: string }, [
        "resource",
      ]),
      fileKeyRef: selector({ key: string, optional: boolean, path: string, volumeName: string }, [
        "key",
        "path",
        "volumeName",
      ]),
    }),
  },
  ["name"],
);

const quantities: Schema = { type: "object", additionalProperties: quantity };

export const resourceRequirements: Schema = object({
  claims: {
    ...list(object({ name: string, request: string }, ["name"])),
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
  },
  limits: quantities,
  requests: quantities,
});

const profileType = object({ localhostProfile: string, type: string }, ["type"]);

const seLinuxOptions = object({ level: string, role: string, type: string, user: string });

const windowsOptions = object({
  gmsaCredentialSpec: string,
  gmsaCredentialSpecName: string,
  hostProcess: boolean,
  runAsUserName: string,
});

const userFields = {
  appArmorProfile: profileType,
  runAsGroup: int64,
  runAsNonRoot: boolean,
  runAsUser: int64,
  seLinuxOptions,
  seccompProfile: profileType,
  windowsOptions,
};

export const podSecurityContext: Schema = object({
  ...userFields,
  fsGroup: int64,
  fsGroupChangePolicy: string,
  seLinuxChangePolicy: string,
  supplementalGroups: atomicList(int64),
  supplementalGroupsPolicy: string,
  sysctls: atomicList(object({ name: string, value: string }, ["name", "value"])),
});

export const containerSecurityContext: Schema = object({
  ...userFields,
  allowPrivilegeEscalation: boolean,
  capabilities: object({ add: atomicList(string), drop: atomicList(string) }),
  privileged: boolean,
  procMount: string,
  readOnlyRootFilesystem: boolean,
});
