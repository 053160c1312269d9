import { resources } from "@spry/kube";
import { type Scene } from "../scene.ts";
import { type Sequence, type Step, step } from "../sequence.ts";
import { deployment, job } from "./workloads.ts";

const held = "stage/held";

const create = (replicas: number): Step =>
  step("create", (scene) => scene.create(resources.deployments, deployment({ replicas })));
const ready = (count: number): Step => step(`${count} become ready`, (scene) => scene.ready(count));
const remove = (policy: "Foreground" | "Background" | "Orphan"): Step =>
  step(`delete ${policy}`, (scene) => scene.delete(resources.deployments, "web", policy));

/** ConfigMaps that own each other, by name: `{ child: ["parent"] }`. */
const configMaps = (owners: Record<string, string[]>, blocking = false): Step =>
  step("create", async (scene) => {
    for (const [name, of] of Object.entries(owners)) {
      const ownerReferences = await Promise.all(
        of.map((owner) => referenceTo(scene, owner, blocking)),
      );
      await scene.create(resources.configMaps, { metadata: { name, ownerReferences } });
    }
  });

async function referenceTo(
  scene: Scene,
  name: string,
  blockOwnerDeletion: boolean,
): Promise<object> {
  const { metadata } = await scene.get(resources.configMaps, name);
  return { apiVersion: "v1", kind: "ConfigMap", name, uid: metadata.uid, blockOwnerDeletion };
}

const hold = (name: string): Step =>
  step(`hold ${name}`, (scene) =>
    scene.patch(resources.configMaps, name, { metadata: { finalizers: [held] } }),
  );
const release = (name: string): Step =>
  step(`release ${name}`, (scene) =>
    scene.patch(resources.configMaps, name, {
      metadata: { [`$deleteFromPrimitiveList/finalizers`]: [held] },
    }),
  );
const drop = (name: string, policy: "Foreground" | "Background" | "Orphan"): Step =>
  step(`delete ${name} ${policy}`, (scene) => scene.delete(resources.configMaps, name, policy));

/** Longer than the half second after which the collector looks again at what it could not do. */
const quietMs = 900;

export const cascades: Sequence[] = [
  {
    name: "Deployment deleted in the background",
    quietMs,
    steps: [create(2), ready(2), remove("Background")],
  },
  {
    name: "Deployment deleted in the foreground",
    quietMs,
    steps: [create(2), ready(2), remove("Foreground")],
  },
  { name: "Deployment orphans", quietMs, steps: [create(2), ready(2), remove("Orphan")] },
  {
    name: "foreground waits for Pods that linger",
    quietMs,
    steps: [
      step("create", (scene) => {
        const { metadata, spec } = deployment({ replicas: 1 });
        const annotations = { "stage/lingers": "" };
        const template = { ...spec.template, metadata: { ...spec.template.metadata, annotations } };
        return scene.create(resources.deployments, { metadata, spec: { ...spec, template } });
      }),
      ready(1),
      remove("Foreground"),
      step("the Pod ends", (scene) => scene.finish(1)),
    ],
  },
  {
    name: "ReplicaSet deleted in the foreground is made again",
    quietMs,
    steps: [
      create(1),
      ready(1),
      step("delete", async (scene) => {
        const { items } = await scene.client.list(resources.replicaSets, {
          namespace: scene.namespace,
        });
        const { name = "", uid } = items[0]?.metadata ?? {};
        await scene.delete(resources.replicaSets, name, "Foreground");
        await scene.until("another of its name", () =>
          scene.get(resources.replicaSets, name).then(
            ({ metadata }) => metadata.uid !== uid,
            () => false,
          ),
        );
      }),
    ],
  },
  {
    name: "chain in the background",
    quietMs,
    steps: [configMaps({ a: [], b: ["a"], c: ["b"], d: ["c"] }), drop("a", "Background")],
  },
  {
    name: "chain in the foreground, its end held",
    quietMs,
    steps: [
      configMaps({ a: [], b: ["a"], c: ["b"] }, true),
      hold("c"),
      drop("a", "Foreground"),
      release("c"),
    ],
  },
  {
    name: "foreground without blocking",
    quietMs,
    steps: [configMaps({ a: [], b: ["a"] }), hold("b"), drop("a", "Foreground"), release("b")],
  },
  {
    name: "background does not wait for what is held",
    quietMs,
    steps: [
      configMaps({ a: [], b: ["a"] }, true),
      hold("b"),
      drop("a", "Background"),
      release("b"),
    ],
  },
  {
    name: "one of two owners goes",
    quietMs,
    steps: [
      configMaps({ a: [], b: [], c: ["a", "b"] }),
      drop("a", "Background"),
      drop("b", "Background"),
    ],
  },
  {
    name: "one of two owners goes in the foreground",
    quietMs,
    steps: [
      configMaps({ a: [], b: [], c: ["a", "b"] }, true),
      drop("a", "Foreground"),
      drop("b", "Foreground"),
    ],
  },
  {
    name: "orphans in a chain",
    quietMs,
    steps: [
      configMaps({ a: [], b: ["a"], c: ["b"] }),
      drop("a", "Orphan"),
      drop("b", "Background"),
    ],
  },
  {
    name: "an owner that is another's namesake",
    quietMs,
    steps: [
      step("create", async (scene) => {
        await scene.create(resources.configMaps, { metadata: { name: "a" } });
        await scene.create(resources.configMaps, {
          metadata: {
            name: "b",
            ownerReferences: [
              {
                apiVersion: "v1",
                kind: "ConfigMap",
                name: "a",
                uid: "0d1e6a0a-0000-4000-8000-000000000000",
              },
            ],
          },
        });
      }),
    ],
  },
  {
    name: "owner held by a finalizer of its own",
    quietMs,
    steps: [configMaps({ a: [], b: ["a"] }), hold("a"), drop("a", "Background"), release("a")],
  },
  {
    name: "a namespace goes with all that is in it",
    // In the order of discovery, while their controllers still work.
    chance: /^history of /,
    quietMs: 1500,
    steps: [
      create(2),
      ready(2),
      step("more", async (scene) => {
        await scene.create(resources.jobs, job());
        await scene.create(resources.services, {
          metadata: { name: "web" },
          spec: { selector: { app: "web" }, ports: [{ port: 80 }] },
        });
        await scene.create(resources.configMaps, {
          metadata: { name: "held", finalizers: [held] },
        });
      }),
      step(
        "delete the namespace",
        (scene) => scene.client.delete(resources.namespaces, { name: scene.namespace }),
        60_000,
      ),
      step("release", async (scene) => {
        await scene.patch(resources.configMaps, "held", { metadata: { finalizers: null } });
        await scene.until("its end", () =>
          scene.client.get(resources.namespaces, { name: scene.namespace }).then(
            () => false,
            () => true,
          ),
        );
      }),
    ],
  },
];
