/** What people get with the usual roles. */
import { describe, expect, test } from "vitest";
import { aggregatedRoles, type Rule } from "./access.ts";

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
