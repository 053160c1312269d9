import { expect, test } from "vitest";
import { apiVersionOf } from "@spry/kube";
import { type Function, functions } from "@spry/function";
import { plainManifests } from "./plain-manifests.ts";

const given = (spec: Partial<Function["spec"]>): Function => ({
  apiVersion: apiVersionOf(functions),
  kind: "Function",
  metadata: { name: "shop", namespace: "default" },
  spec: { runtime: "nodejs24", source: { inline: { source: "" } }, ...spec },
});

test("a profile, scaling and schedules become resources, an autoscaler and CronJobs", () => {
  const manifests = plainManifests(
    given({
      resourceConfiguration: { function: { profile: "M" } },
      scaleConfig: { minReplicas: 2, maxReplicas: 4 },
      schedules: [
        { name: "clean", cron: "*/5 * * * *", overlap: "Skip", payload: '{"a":1}', path: "/x" },
      ],
    }),
    "shop",
  );
  expect(manifests["deployment"]?.[0]).toMatchObject({
    spec: { template: { spec: { containers: [{ resources: { limits: { memory: "512Mi" } } }] } } },
  });
  expect(manifests["autoscaler"]?.[0]).toMatchObject({
    spec: { minReplicas: 2, maxReplicas: 4, scaleTargetRef: { name: "shop" } },
  });
  expect(manifests["schedules"]?.[0]).toMatchObject({
    metadata: { name: "shop-clean" },
    spec: { schedule: "*/5 * * * *", concurrencyPolicy: "Forbid" },
  });
  expect(JSON.stringify(manifests["schedules"])).toContain('"http://shop/x"');
});

test("a Function that is at zero has an instance, and one without scaling no autoscaler", () => {
  const fn = given({ scaleConfig: { minReplicas: 0, maxReplicas: 1 } });
  const manifests = plainManifests({ ...fn, status: { replicas: 0 } }, "shop");
  expect(manifests["deployment"]?.[0]).toMatchObject({ spec: { replicas: 1 } });
  expect(Object.keys(manifests)).toEqual(["deployment", "service"]);
});
