/** Who may do what: the controller's own rights, and those that people get with the usual roles. */
import { validatingConfigurationName } from "@spry/exposure";
import { apiRules, domainMappings, functions, istioGateways, knative } from "@spry/function";
import { serverlesses } from "@spry/controller";
import { servingCrds, servingWebhookNames } from "@spry/serving";
import { eventingRoles } from "./eventing.ts";
import { type InstalledObject, object } from "./parts.ts";
import { rule, type Rule } from "./rule.ts";

export { rule, type Rule } from "./rule.ts";

const rbac = "rbac.authorization.k8s.io/v1";
const group = "rbac.authorization.k8s.io";

export const controllerAccount = "serverless-controller";

const reading = ["get", "list", "watch"];
const writing = ["create", "delete", "deletecollection", "patch", "update"];

const servingKinds = [...Object.values(knative), domainMappings].map(({ plural }) => plural);
const webhookKinds = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

/**
 * For what is served on demand: Knative Serving's objects, their children, and its definitions and webhooks, which the
 * leader installs. A Function owns a Knative Service; between the two ways of serving, endpoints are cleaned up.
 */
export const onDemandRules: Rule[] = [
  rule("", ["endpoints"], "delete"),
  rule(knative.services.group, servingKinds, "list", "watch", "create", "patch"),
  rule(knative.services.group, ["services"], "get", "delete"),
  // A revision of the history that traffic names is restored.
  rule(knative.services.group, ["configurations", "revisions"], "get"),
  rule(knative.revisions.group, ["revisions"], "delete"),
  rule(
    knative.services.group,
    servingKinds.map((plural) => `${plural}/status`),
    "update",
  ),
  rule("discovery.k8s.io", ["endpointslices"], "list", "watch", "create", "update", "delete"),
  // A creation, and a list, cannot be limited to names.
  rule("apiextensions.k8s.io", ["customresourcedefinitions"], "list", "watch", "create"),
  {
    ...rule("apiextensions.k8s.io", ["customresourcedefinitions"], "get", "patch"),
    resourceNames: servingCrds().map(({ metadata }) => metadata.name ?? ""),
  },
  {
    ...rule("admissionregistration.k8s.io", webhookKinds, "patch"),
    resourceNames: Object.values(servingWebhookNames),
  },
];

/** In the whole cluster: Functions may be in any namespace, and so may their children. */
export const clusterRules: Rule[] = [
  // How many there are decides about the default presets.
  rule("", ["nodes"], "list"),
  rule("", ["namespaces"], "list", "watch"),
  rule("", ["configmaps", "services"], "get", "list", "watch", "create", "patch", "delete"),
  rule("", ["pods"], "list", "watch"),
  rule("", ["secrets"], "get", "list", "watch", "create", "patch", "delete"),
  rule("", ["serviceaccounts"], "get", "list", "watch", "create", "patch"),
  rule("", ["events"], "list", "create", "patch"),
  rule("apps", ["deployments"], "get", "list", "watch", "create", "patch", "delete"),
  rule("apps", ["controllerrevisions"], "get", "list", "watch", "create", "patch", "delete"),
  rule("batch", ["jobs"], "list", "watch", "create", "delete"),
  rule(
    "autoscaling",
    ["horizontalpodautoscalers"],
    "get",
    "list",
    "watch",
    "create",
    "patch",
    "delete",
  ),
  // Patched when a Git server says that there was a push.
  rule(functions.group, ["functions"], "list", "watch", "patch"),
  rule(functions.group, ["functions/status"], "patch"),
  rule(serverlesses.group, ["serverlesses"], "list", "watch", "patch"),
  rule(serverlesses.group, ["serverlesses/status"], "update"),
  rule(functions.group, ["gitrepositories"], "get"),
  {
    ...rule("apiextensions.k8s.io", ["customresourcedefinitions"], "get", "patch"),
    resourceNames: [functions, apiRules, istioGateways].map(
      ({ plural, group: inGroup }) => `${plural}.${inGroup}`,
    ),
  },
  rule(apiRules.group, ["apirules"], "list", "watch"),
  rule(apiRules.group, ["apirules/status"], "patch"),
  rule(istioGateways.group, ["gateways"], "list", "watch"),
  {
    ...rule(
      "admissionregistration.k8s.io",
      ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
      "list",
      "watch",
      "patch",
    ),
    resourceNames: [
      "defaulting.webhook.serverless.kyma-project.io",
      "validation.webhook.serverless.kyma-project.io",
      validatingConfigurationName,
    ],
  },
  ...onDemandRules,
];

/** In Spry's own namespace. */
export const namespaceRules: Rule[] = [
  rule("coordination.k8s.io", ["leases"], "get", "create", "update"),
  rule("", ["secrets"], "update"),
];

export function accessObjects(namespace: string): InstalledObject[] {
  const account = { name: controllerAccount, namespace };
  const subjects = [{ kind: "ServiceAccount", ...account }];
  const roleRef = (kind: string) => ({ apiGroup: group, kind, name: controllerAccount });
  return [
    object("v1", "ServiceAccount", account, { automountServiceAccountToken: false }),
    object(rbac, "ClusterRole", { name: controllerAccount }, { rules: clusterRules }),
    object(
      rbac,
      "ClusterRoleBinding",
      { name: controllerAccount },
      { roleRef: roleRef("ClusterRole"), subjects },
    ),
    object(rbac, "Role", account, { rules: namespaceRules }),
    object(rbac, "RoleBinding", account, { roleRef: roleRef("Role"), subjects }),
    ...aggregatedRoles(),
  ];
}

/**
 * Users who may view or edit a namespace may view or edit its Functions; these roles do not configure the platform
 * (docs/compatibility.md#user-roles).
 */
export function aggregatedRoles(): InstalledObject[] {
  const toView = "rbac.authorization.k8s.io/aggregate-to-view";
  const toEdit = "rbac.authorization.k8s.io/aggregate-to-edit";
  const toAdmin = "rbac.authorization.k8s.io/aggregate-to-admin";
  const role = (name: string, targets: string[], rules: Rule[]) =>
    object(
      rbac,
      "ClusterRole",
      { name, labels: Object.fromEntries(targets.map((target) => [target, "true"])) },
      { rules },
    );
  const all = [toView, toEdit, toAdmin];
  const functionParts = ["functions", "functions/status", "functions/scale", "gitrepositories"];
  const servingParts = servingKinds.flatMap((plural) => [plural, `${plural}/status`]);
  const ruleParts = ["apirules", "apirules/status"];
  const serverlessParts = ["serverlesses", "serverlesses/status"];
  return [
    role("kyma-functions-view", all, [rule(functions.group, functionParts, ...reading)]),
    role(
      "kyma-functions-edit",
      [toEdit, toAdmin],
      [
        rule(functions.group, ["functions", "gitrepositories"], ...writing),
        rule(functions.group, ["functions/scale"], "patch", "update"),
      ],
    ),
    role("spry-serving-view", all, [rule(knative.services.group, servingParts, ...reading)]),
    role(
      "spry-serving-edit",
      [toEdit, toAdmin],
      [rule(knative.services.group, servingKinds, ...writing)],
    ),
    role("kyma-apirules-view", all, [rule(apiRules.group, ruleParts, ...reading)]),
    role("kyma-apirules-edit", [toEdit, toAdmin], [rule(apiRules.group, ["apirules"], ...writing)]),
    ...eventingRoles(),
    role("kyma-serverless-view", all, [rule(serverlesses.group, serverlessParts, ...reading)]),
    // It configures the platform for everybody: administrators bind it, in the platform's namespace.
    role("kyma-serverless-edit", [], [rule(serverlesses.group, ["serverlesses"], ...writing)]),
  ];
}
