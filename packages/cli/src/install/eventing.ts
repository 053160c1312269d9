/** Who may do what with Subscriptions and their events. */
import { serverlesses } from "@spry/controller";
import { subscriptionsDefinition } from "@spry/eventing";
import { functions, subscriptions } from "@spry/function";
import { reachingForEdit, reachingForView } from "./administration.ts";
import { type InstalledObject, object } from "./parts.ts";
import { rule, type Rule } from "./rule.ts";

const { group } = subscriptions;
const rbac = "rbac.authorization.k8s.io/v1";

/** The controller on one machine, where there are Subscriptions: definition and status. */
export const subscriptionRules: Rule[] = [
  {
    ...rule("apiextensions.k8s.io", ["customresourcedefinitions"], "get", "patch"),
    resourceNames: [subscriptionsDefinition],
  },
  rule(group, ["subscriptions"], "list", "watch"),
  rule(group, ["subscriptions/status"], "patch"),
];

/** What accepts and delivers events: on one machine the gateway. It delivers only if the definition of Subscriptions is ours. */
export const eventingRules: Rule[] = [
  {
    ...rule("apiextensions.k8s.io", ["customresourcedefinitions"], "get"),
    resourceNames: [subscriptionsDefinition],
  },
  // Which Function has a name now: calls of one that was deleted do not belong to the next one.
  rule("", ["namespaces"], "get", "list", "watch"),
  rule("", ["services"], "list", "watch"),
  rule("discovery.k8s.io", ["endpointslices"], "list", "watch"),
  rule(group, ["subscriptions"], "list", "watch"),
  rule("", ["events"], "create", "patch"),
  // Where traces are sent.
  rule(serverlesses.group, ["serverlesses"], "list", "watch"),
  // Whose schedule is run by hand.
  rule(functions.group, ["functions"], "get"),
  // To authenticate and authorize requests for dead letters and calls.
  rule("authentication.k8s.io", ["tokenreviews"], "create"),
  rule("authorization.k8s.io", ["subjectaccessreviews"], "create"),
];

/** Users who may view or edit a namespace may view or edit its Subscriptions, dead letters and calls. */
export function eventingRoles(): InstalledObject[] {
  const targets = (...names: string[]) =>
    Object.fromEntries(
      names.map((name) => [`rbac.authorization.k8s.io/aggregate-to-${name}`, "true"]),
    );
  const reading = ["get", "list", "watch"];
  const writing = ["create", "delete", "deletecollection", "patch", "update"];
  return [
    object(
      rbac,
      "ClusterRole",
      { name: "kyma-subscriptions-view", labels: targets("view", "edit", "admin") },
      {
        rules: [
          rule(group, ["subscriptions", "subscriptions/status"], ...reading),
          ...reachingForView,
        ],
      },
    ),
    object(
      rbac,
      "ClusterRole",
      { name: "kyma-subscriptions-edit", labels: targets("edit", "admin") },
      {
        rules: [
          rule(group, ["subscriptions"], ...writing),
          // Contents of events: not for users who may only view.
          rule(group, ["subscriptions/deadletters", "calls"], "get", "list", "update", "delete"),
          rule(group, ["subscriptions/replay"], "update"),
          rule(group, ["calls"], "create"),
          ...reachingForEdit,
        ],
      },
    ),
  ];
}
