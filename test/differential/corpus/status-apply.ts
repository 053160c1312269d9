import { type Case, apply, at, get } from "../step.ts";
import { sampleOf } from "./objects.ts";

const one = `${at("apps/v1", "deployments")}/one`;
const { spec } = sampleOf("Deployment").object as { spec: object };
const deployment = (rest: object) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "one" },
  ...rest,
});

/** A status in what is applied to the object itself is not written, and is in conflict with that of its manager all the same. */
export const appliedStatuses: Case[] = [
  {
    name: "server-side apply of an object with another status",
    steps: [
      apply("one", one, deployment({ spec })),
      apply(
        "controller",
        `${one}/status`,
        deployment({ status: { observedGeneration: 1, replicas: 2 } }),
      ),
      apply("one", one, deployment({ spec, status: { observedGeneration: 7, replicas: 5 } })),
      apply(
        "two",
        one,
        deployment({ spec: { replicas: 3 }, status: { replicas: 4 } }),
        "&force=true",
      ),
      get(one),
      apply("two", `${one}/status`, deployment({ spec: { replicas: 9 }, status: { replicas: 6 } })),
      get(one),
    ],
  },
];
