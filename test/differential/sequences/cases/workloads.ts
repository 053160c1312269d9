/** Objects that the cases are made of. */
import { resources } from "@spry/kube";
import { type Scene } from "../scene.ts";

export const template = (image = "a:1", more: object = {}, metadata: object = {}) => ({
  metadata: { labels: { app: "web" }, ...metadata },
  spec: {
    automountServiceAccountToken: false,
    containers: [{ name: "main", image }],
    ...more,
  },
});

export const deployment = (spec: object = {}, name = "web") => ({
  metadata: { name },
  spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, template: template(), ...spec },
});

export const replicaSet = (spec: object = {}, name = "set") => ({
  metadata: { name },
  spec: { replicas: 3, selector: { matchLabels: { app: "web" } }, template: template(), ...spec },
});

export const job = (spec: object = {}, more: object = {}, name = "work") => ({
  metadata: { name },
  spec: {
    template: { spec: { ...template().spec, restartPolicy: "Never", ...more } },
    ...spec,
  },
});

export const setImage =
  (image: string, name = "web") =>
  (scene: Scene) =>
    scene.patch(resources.deployments, name, {
      spec: { template: { spec: { containers: [{ name: "main", image }] } } },
    });

export const setSpec =
  (spec: object, name = "web") =>
  (scene: Scene) =>
    scene.patch(resources.deployments, name, { spec });
