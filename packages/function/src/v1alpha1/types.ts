import {
  type EnvVar,
  type KubeObject,
  type Resource,
  type ResourceRequirements,
} from "@spry/kube/browser";
import { type FunctionStatus } from "../types.ts";

/** `serverless.kyma-project.io/v1alpha1 Function` (docs/compatibility.md#v1alpha1). */
export interface FunctionV1alpha1 extends KubeObject {
  spec: FunctionV1alpha1Spec;
  status?: FunctionV1alpha1Status;
}

export interface FunctionV1alpha1Spec {
  /** Code, or, of the type `git`, the name of a GitRepository. */
  source: string;
  type?: "git" | "";
  deps?: string;
  runtime?: string;
  runtimeImageOverride?: string;
  env?: EnvVar[];
  resources?: ResourceRequirements;
  buildResources?: ResourceRequirements;
  minReplicas?: number;
  maxReplicas?: number;
  labels?: Record<string, string>;
  baseDir?: string;
  reference?: string;
}

export interface FunctionV1alpha1Status extends Pick<
  FunctionStatus,
  "conditions" | "runtime" | "commit" | "reference" | "baseDir"
> {
  source?: string;
  runtimeImageOverride?: string;
}

/** `serverless.kyma-project.io/v1alpha1 GitRepository`: what Git sources were before they were part of the Function. */
export interface GitRepository extends KubeObject {
  spec: { url: string; auth?: { type: "basic" | "key"; secretName: string } };
}

export const gitRepositories: Resource<GitRepository> = {
  group: "serverless.kyma-project.io",
  version: "v1alpha1",
  kind: "GitRepository",
  plural: "gitrepositories",
  namespaced: true,
};

export const functionsV1alpha1: Resource<FunctionV1alpha1> = {
  group: "serverless.kyma-project.io",
  version: "v1alpha1",
  kind: "Function",
  plural: "functions",
  namespaced: true,
};
