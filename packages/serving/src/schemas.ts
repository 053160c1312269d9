/**
 * The schemas: types of what the platform reads. The rest of a PodSpec is kept as it is written, so that the webhook can
 * name the fields that must not be set; a schema would drop them without a word.
 */
type Schema = Record<string, unknown>;

const text: Schema = { type: "string" };
const integer: Schema = { type: "integer", format: "int32" };
const long: Schema = { type: "integer", format: "int64" };
const flag: Schema = { type: "boolean" };
const portOrName: Schema = { "x-kubernetes-int-or-string": true };
const quantity: Schema = {
  "x-kubernetes-int-or-string": true,
  anyOf: [{ type: "integer" }, { type: "string" }],
};
const list = (items: Schema, more: Schema = {}): Schema => ({ type: "array", items, ...more });
const map = (values: Schema): Schema => ({ type: "object", additionalProperties: values });
const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({
  type: "object",
  properties,
  ...more,
});
const open = { "x-kubernetes-preserve-unknown-fields": true };

const probe = object(
  {
    initialDelaySeconds: integer,
    timeoutSeconds: integer,
    periodSeconds: integer,
    successThreshold: integer,
    failureThreshold: integer,
    exec: object({ command: list(text) }, open),
    httpGet: object({ host: text, path: text, port: portOrName, scheme: text }, open),
    tcpSocket: object({ host: text, port: portOrName }, open),
    grpc: object({ port: integer, service: text }, open),
  },
  open,
);

const container = object(
  {
    name: text,
    image: text,
    args: list(text),
    command: list(text),
    workingDir: text,
    env: list(object({ name: text, value: text, valueFrom: object({}, open) }, open)),
    envFrom: list(
      object({ prefix: text, configMapRef: object({}, open), secretRef: object({}, open) }, open),
    ),
    imagePullPolicy: text,
    ports: list(object({ containerPort: integer, name: text, protocol: text }, open)),
    readinessProbe: probe,
    livenessProbe: probe,
    startupProbe: probe,
    resources: object({ limits: map(quantity), requests: map(quantity) }, open),
    securityContext: object(
      { runAsUser: long, runAsGroup: long, capabilities: object({ drop: list(text) }, open) },
      open,
    ),
    terminationMessagePath: text,
    terminationMessagePolicy: text,
    volumeMounts: list(
      object({ name: text, mountPath: text, subPath: text, readOnly: flag }, open),
    ),
  },
  open,
);

const items = list(object({ key: text, path: text, mode: integer }, open));
const source = object({ name: text, items, optional: flag }, open);
const volume = object(
  {
    name: text,
    secret: object({ secretName: text, items, optional: flag, defaultMode: integer }, open),
    configMap: object({ name: text, items, optional: flag, defaultMode: integer }, open),
    emptyDir: object({ medium: text, sizeLimit: quantity }, open),
    projected: object(
      {
        defaultMode: integer,
        sources: list(
          object(
            {
              secret: source,
              configMap: source,
              serviceAccountToken: object(
                { audience: text, expirationSeconds: long, path: text },
                open,
              ),
              downwardAPI: object(
                {
                  items: list(
                    object(
                      {
                        path: text,
                        mode: integer,
                        fieldRef: object({}, open),
                        resourceFieldRef: object({}, open),
                      },
                      open,
                    ),
                  ),
                },
                open,
              ),
            },
            open,
          ),
        ),
      },
      open,
    ),
  },
  open,
);

const podSpec = object(
  {
    containerConcurrency: long,
    timeoutSeconds: long,
    responseStartTimeoutSeconds: long,
    idleTimeoutSeconds: long,
    enableServiceLinks: flag,
    automountServiceAccountToken: flag,
    serviceAccountName: text,
    imagePullSecrets: list(object({ name: text })),
    containers: list(container),
    initContainers: list(container),
    securityContext: object({}, open),
    volumes: list(volume),
  },
  open,
);

const template = object({
  metadata: object(
    {
      name: text,
      annotations: map(text),
      labels: map(text),
      finalizers: list(text),
      namespace: text,
    },
    open,
  ),
  spec: podSpec,
});

const targets = list(
  object({
    configurationName: text,
    latestRevision: flag,
    percent: long,
    revisionName: text,
    tag: text,
    url: text,
  }),
);

const conditions = list(
  object(
    {
      type: text,
      status: text,
      reason: text,
      message: text,
      severity: text,
      lastTransitionTime: text,
    },
    { required: ["status", "type"] },
  ),
);

const status = { annotations: map(text), conditions, observedGeneration: long };
const configurationStatus = { latestCreatedRevisionName: text, latestReadyRevisionName: text };
const routeStatus = {
  address: object({ url: text, CACerts: text, audience: text, name: text }),
  traffic: targets,
  url: text,
};
const statuses = list(object({ name: text, imageDigest: text }));

function schema(description: string, spec: Schema, ofStatus: Record<string, Schema>): object {
  return {
    description,
    ...object({
      apiVersion: text,
      kind: text,
      metadata: { type: "object" },
      spec,
      status: object({ ...status, ...ofStatus }),
    }),
  };
}

export const serviceSchema = () =>
  schema(
    "A Service is served by a Configuration and a Route of its name.",
    object({ template, traffic: targets }),
    { ...configurationStatus, ...routeStatus },
  );

export const configurationSchema = () =>
  schema(
    "A Configuration has a Revision for each state that its template has been in.",
    object({ template }),
    configurationStatus,
  );

export const revisionSchema = () =>
  schema("A Revision is one state of a Configuration's template, and does not change.", podSpec, {
    actualReplicas: integer,
    desiredReplicas: integer,
    containerStatuses: statuses,
    initContainerStatuses: statuses,
    logUrl: text,
  });

export const domainMappingSchema = () =>
  schema(
    "A DomainMapping leads the host that it is named by to a Service or a Route.",
    object(
      {
        ref: object(
          { apiVersion: text, kind: text, name: text, namespace: text },
          { required: ["kind", "name"], ...open },
        ),
        tls: object({ secretName: text }, { required: ["secretName"] }),
      },
      { required: ["ref"] },
    ),
    { address: routeStatus.address, url: text },
  );

export const routeSchema = () =>
  schema("A Route divides requests among Revisions.", object({ traffic: targets }), routeStatus);
