/** Objects as an API server would hand them out, for tests. */
import { type Function, type FunctionSpec } from "@spry/function";
import { type Job, type Pod } from "@spry/kube";
import { settingsOf } from "../config.ts";

export const settings = settingsOf({
  runtimeImages: {
    nodejs20: "pull.example/spry/nodejs20:1",
    nodejs22: "pull.example/spry/nodejs22:1",
    nodejs24: "pull.example/spry/nodejs24:1",
  },
  builderImage: "pull.example/spry/builder:1",
});

export const digest = `sha256:${"d".repeat(64)}`;

export function functionOf(spec: Partial<FunctionSpec> = {}, name = "hello"): Function {
  return {
    apiVersion: "serverless.kyma-project.io/v1alpha2",
    kind: "Function",
    metadata: { name, namespace: "shop", uid: `uid-${name}`, generation: 1, labels: { team: "a" } },
    spec: { source: { inline: { source: "code" } }, ...spec },
  };
}

export function jobOf(conditions: { type: string; status: string; reason?: string }[] = []): Job {
  const uid = "job-1";
  return {
    metadata: { name: "hello-build-1", namespace: "shop", uid },
    status: { conditions },
  };
}

/** A Pod of that Job, with the state of its container. */
export function buildPodOf(state: object | undefined, phase = "Running"): Pod {
  const status = { name: "executor", image: "", imageID: "", ready: false, restartCount: 0 };
  return {
    metadata: {
      name: "hello-build-1-x",
      namespace: "shop",
      ownerReferences: [
        {
          apiVersion: "batch/v1",
          kind: "Job",
          name: "hello-build-1",
          uid: "job-1",
          controller: true,
        },
      ],
    },
    spec: { containers: [{ name: "executor", resources: { limits: { memory: "64Mi" } } }] },
    status: { phase, ...(state ? { containerStatuses: [{ ...status, state }] } : {}) },
  };
}
