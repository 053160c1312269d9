/**
 * The administration of events as an API of the cluster: `spry events`, `dlq` and `async` call the API server, which
 * authenticates the user.
 */
import { administrationApi } from "@spry/eventing";
import { type KubeObject, type Resource } from "@spry/kube";
import { type InstalledObject, object } from "./parts.ts";
import { rule, type Rule } from "./rule.ts";

const { group, version } = administrationApi;
const rbac = "rbac.authorization.k8s.io";

export interface ApiService extends KubeObject {
  status?: { conditions?: { type: string; status: string; lastTransitionTime?: string }[] };
  spec?: {
    group: string;
    version: string;
    service?: { name: string; namespace: string; port: number };
    caBundle?: string;
    groupPriorityMinimum: number;
    versionPriority: number;
  };
}

export const apiServices: Resource<ApiService> = {
  group: "apiregistration.k8s.io",
  version: "v1",
  kind: "APIService",
  plural: "apiservices",
  namespaced: false,
};

/** Of the Service, and of the Secret with its certificate. */
export const administrationService = "serverless-eventing-administration";
export const administrationPort = 8443;
export const administrationName = `${version}.${group}`;

/** The controller's: whose certificates the API server trusts there. */
export const administrationRules: Rule[] = [
  {
    ...rule("apiregistration.k8s.io", ["apiservices"], "get", "patch"),
    resourceNames: [administrationName],
  },
];

/** Of the program that answers, in Spry's own namespace. */
export const administrationSecretRules: Rule[] = [
  { ...rule("", ["secrets"], "list", "watch"), resourceNames: [administrationService] },
];

/** Whose requests the API server passes on. Whether the request is allowed is decided by those on `eventing.kyma-project.io`, too. */
export const reachingForView: Rule[] = [rule(group, ["subscriptions"], "get", "list")];
export const reachingForEdit: Rule[] = [
  rule(
    group,
    [
      "calls",
      "calls/cancel",
      "functions/schedules",
      "subscriptions/deadletters",
      "subscriptions/replay",
    ],
    "create",
    "get",
    "list",
  ),
];

export function administrationObjects(
  namespace: string,
  { account, selector }: { account: string; selector: Record<string, string> },
): InstalledObject[] {
  return [
    object(
      "v1",
      "Service",
      { name: administrationService, namespace },
      {
        spec: {
          selector,
          // While the queue cannot be reached it answers, too: an API that is not available holds up the deletion of namespaces.
          publishNotReadyAddresses: true,
          ports: [{ name: "https", port: 443, targetPort: "https" }],
        },
      },
    ),
    object(
      "apiregistration.k8s.io/v1",
      "APIService",
      { name: administrationName },
      {
        spec: {
          group,
          version,
          // Behind everything else.
          groupPriorityMinimum: 100,
          versionPriority: 100,
          service: { name: administrationService, namespace, port: 443 },
        },
      },
    ),
    // By which certificates the API server's requests are recognized.
    object(
      `${rbac}/v1`,
      "RoleBinding",
      { name: administrationService, namespace: "kube-system" },
      {
        roleRef: {
          apiGroup: rbac,
          kind: "Role",
          name: "extension-apiserver-authentication-reader",
        },
        subjects: [{ kind: "ServiceAccount", name: account, namespace }],
      },
    ),
  ];
}
