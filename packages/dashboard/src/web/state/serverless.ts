/** The `Serverless` object: the settings of the whole platform. */
import { type KubeObject, type Resource } from "@spry/kube/browser";
import { otherFields } from "./settings-fields.ts";
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

/** With what else can be set, as comments. */
export function settingsYaml({ spec = {} }: Pick<Serverless, "spec">): string {
  const isEmpty = Object.keys(spec).length === 0;
  const unset = otherFields.filter(({ path }) => {
    const [first = "", second] = path.split(".");
    const value = (spec as Record<string, unknown>)[first];
    return second === undefined
      ? value === undefined
      : (value as Record<string, unknown> | undefined)?.[second] === undefined;
  });
  const comments = unset.map(({ path, hint, example }) => {
    const [first = "", second] = path.split(".");
    const line =
      second === undefined ? `${first}: ${example}` : `${first}: { ${second}: ${example} }`;
    return `# ${hint}:\n# ${line}\n`;
  });
  return (isEmpty ? "" : dumpYaml(spec)) + comments.join("");
}

/** The spec that a text means, or why it means none. */
export function readSettings(text: string): { spec: object } | { problem: string; line: number } {
  try {
    // Of comments alone YAML makes no document at all.
    const isEmpty = !/^\s*[^#\s]/m.test(text);
    const value: unknown = isEmpty ? {} : (loadYaml(text) ?? {});
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { spec: value };
    return { problem: "the settings must be fields with values", line: 1 };
  } catch (error) {
    const { reason, mark } = error as { reason?: string; mark?: { line: number } };
    return { problem: reason ?? "this is not valid YAML", line: (mark?.line ?? 0) + 1 };
  }
}
