/**
 * Who the platform's own parts are to its API server, and what each may do there: what it may on a cluster, by the same
 * rules. Administrators are the person with the kubeconfig, the start itself, and the workload controllers, which are
 * what kube-controller-manager is on a cluster.
 */
import { clusterRules, namespaceRules, rule, type Rule } from "../install/access.ts";
import { eventingRules, subscriptionRules } from "../install/eventing.ts";
import { gatewayExposureRules, gatewayNamespaceRules, gatewayRules } from "../install/gateway.ts";
import { type InstalledObject, object } from "../install/parts.ts";
import { registryRules } from "../install/registry.ts";
import { subjects } from "./certificate-subjects.ts";

export interface Identity {
  /** The user: a certificate's common name, or who requests in process are from. */
  name: string;
  /** Its groups: a certificate's organisations. */
  groups: string[];
  /** In the whole cluster. */
  rules: Rule[];
  /** In the platform's own namespace, besides. */
  ownRules?: Rule[];
}

/** For requests in process, which no certificate has authenticated. */
const authenticated = "system:authenticated";
export const nodeName = "spry";

/** A process of its own, to which anyone may send requests. Its certificate is the identity. */
export const gatewayIdentity: Identity = {
  name: subjects.gateway.commonName,
  groups: subjects.gateway.organisations,
  rules: [...gatewayRules, ...gatewayExposureRules, ...eventingRules],
  ownRules: gatewayNamespaceRules,
};

/** Function Controller, webhooks, and what receives Git servers' pushes. */
export const controllerIdentity: Identity = {
  name: "spry:controller",
  groups: [...subjects.gateway.organisations, authenticated],
  rules: [...clusterRules, ...subscriptionRules],
  ownRules: namespaceRules,
};

/** What removes images that nothing in the cluster refers to. */
export const registryIdentity: Identity = {
  name: "spry:registry",
  groups: [...subjects.gateway.organisations, authenticated],
  rules: registryRules,
};

/** A kubelet's needs, as far as this node has them, and those of a node's network. */
export const nodeIdentity: Identity = {
  name: `system:node:${nodeName}`,
  groups: ["system:nodes", authenticated],
  rules: [
    rule("", ["nodes"], "get", "list", "watch", "create", "patch", "update"),
    rule("", ["nodes/status"], "patch", "update"),
    rule("", ["pods"], "get", "list", "watch", "delete"),
    rule("", ["pods/status"], "patch", "update"),
    // What Pods mount of them is kept current.
    rule("", ["secrets", "configmaps"], "get", "list", "watch"),
    rule("", ["serviceaccounts"], "get"),
    rule("", ["serviceaccounts/token"], "create"),
    rule("", ["services", "namespaces"], "get", "list", "watch"),
    rule("", ["events"], "create", "patch"),
    // Images that they name stay on the machine while they have no Pods.
    rule("apps", ["deployments", "replicasets", "controllerrevisions"], "list"),
    // Whose Pods NetworkPolicies are about while there are none.
    rule("apps", ["deployments"], "watch"),
    rule("coordination.k8s.io", ["leases"], "get", "create", "patch", "update"),
    rule("discovery.k8s.io", ["endpointslices"], "list", "watch"),
    rule("networking.k8s.io", ["networkpolicies"], "list", "watch"),
  ],
};

/** Roles and bindings of all of them. */
export function identityObjects(namespace: string): InstalledObject[] {
  const all = [gatewayIdentity, controllerIdentity, registryIdentity, nodeIdentity];
  return all.flatMap(({ name, rules, ownRules }) => {
    const users = [{ kind: "User", apiGroup, name }];
    const own = { name, namespace };
    return [
      object(rbac, "ClusterRole", { name }, { rules }),
      object(
        rbac,
        "ClusterRoleBinding",
        { name },
        { roleRef: role("ClusterRole", name), subjects: users },
      ),
      ...(ownRules
        ? [
            object(rbac, "Role", own, { rules: ownRules }),
            object(rbac, "RoleBinding", own, { roleRef: role("Role", name), subjects: users }),
          ]
        : []),
    ];
  });
}

const apiGroup = "rbac.authorization.k8s.io";
const rbac = `${apiGroup}/v1`;
const role = (kind: string, name: string) => ({ apiGroup, kind, name });
