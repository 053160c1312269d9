/** The `Serverless` object: the settings of the whole platform. */
import { type KubeObject, type Resource } from "@spry/kube/browser";
import { dumpYaml, loadYaml } from "@spry/kube/yaml";

export interface Serverless extends KubeObject {
  spec?: object;
  status?: {
    state?: string;
    conditions?: { type: string; status: string; reason: string; message: string }[];
  };
}

export const serverlesses: Resource<Serverless> = {
  group: "operator.kyma-project.io",
  version: "v1alpha1",
  kind: "Serverless",
  plural: "serverlesses",
  namespaced: true,
};

export const settingsYaml = ({ spec }: Pick<Serverless, "spec">): string => {
  const isEmpty = Object.keys(spec ?? {}).length === 0;
  return isEmpty ? "" : dumpYaml(spec);
};

/** The spec that a text means, or why it means none. */
export function readSettings(text: string): { spec: object } | { problem: string; line: number } {
  try {
    const value: unknown = loadYaml(text) ?? {};
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { spec: value };
    return { problem: "the settings must be fields with values", line: 1 };
  } catch (error) {
    const { reason, mark } = error as { reason?: string; mark?: { line: number } };
    return { problem: reason ?? "this is not valid YAML", line: (mark?.line ?? 0) + 1 };
  }
}
