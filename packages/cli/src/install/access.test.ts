/** What people get with the usual roles, and what the controller may do. */
import { describe, expect, test } from "vitest";
import { aggregatedRoles, clusterRules, type Rule } from "./access.ts";
import { webhookObjects } from "./controller.ts";

const aggregated = (role: string) =>
  aggregatedRoles()
    .filter(({ metadata }) => {
      return metadata.labels?.[`rbac.authorization.k8s.io/aggregate-to-${role}`] === "true";
    })
    .flatMap((object) => (object as unknown as { rules: Rule[] }).rules);

const verbsOn = (role: string, resource: string) =>
  aggregated(role)
    .filter(({ resources }) => resources.includes(resource))
    .flatMap(({ verbs }) => verbs)
    .toSorted()
    .join(" ");

const reading = "get list watch";
const all = "create delete deletecollection get list patch update watch";

describe("a user with a usual role in a namespace may", () => {
  test.each([
    ["view", "functions", reading],
    ["edit", "functions", all],
    ["admin", "functions", all],
    ["view", "serverlesses", reading],
    // The object configures the platform for all namespaces.
    ["edit", "serverlesses", reading],
    ["admin", "serverlesses", reading],
  ])("as %s do with %s: %s", (role, resource, verbs) =>
    expect(verbsOn(role, resource)).toBe(verbs),
  );
});

test("the controller creates no webhooks, and changes those of its installation only", () => {
  const webhooks = clusterRules.filter(({ resources }) =>
    resources.some((resource) => resource.endsWith("webhookconfigurations")),
  );
  expect(new Set(webhooks.flatMap(({ verbs }) => verbs))).toEqual(
    new Set(["list", "watch", "patch"]),
  );
  const names = new Set(webhookObjects("kyma-system").map(({ metadata }) => metadata.name));
  expect(new Set(webhooks.flatMap(({ resourceNames = [""] }) => resourceNames))).toEqual(names);
});
