/** What tests of a Function's history do again and again. */
import { expect } from "vitest";
import { type ClusterPlatform } from "./cluster-platform.ts";
import { functionManifest, type Platform } from "./platform.ts";

/** An entry of `spry history -o json`. */
export interface HistoryEntry {
  revision: number;
  author?: string;
  image: string;
  source: { type: string; reference?: string; commit?: string };
  serves: number;
}

export function answering(text: string): string {
  return `module.exports = { main: () => ${JSON.stringify(text)} };`;
}

export function historyOn(platform: Platform | ClusterPlatform) {
  const answers = (name: string, text: string) =>
    platform.callUntil(`${name}.default`, ({ status, body }) => status === 200 && body === text);
  /** Newest first. */
  const historyOf = async (name: string): Promise<HistoryEntry[]> => {
    const { code, stdout, stderr } = await platform.spry(["history", name, "-o", "json"]);
    expect(code, stderr).toBe(0);
    return JSON.parse(stdout) as HistoryEntry[];
  };
  return {
    answers,
    historyOf,
    edit: async (name: string, text: string, spec: Record<string, unknown> = {}) => {
      await platform.k("apply -f -", functionManifest(name, answering(text), spec));
      await answers(name, text);
    },
    numbersOf: async (name: string) => (await historyOf(name)).map(({ revision }) => revision),
    jobsOf: async (name: string) => {
      const selector = `serverless.kyma-project.io/function-name=${name}`;
      return (await platform.k(`get jobs -l ${selector} -o name`)).split("\n").length;
    },
    settled: (name: string, revision: number) =>
      platform.k(
        `wait --for=jsonpath={.status.revision}=${revision} function/${name} --timeout=60s`,
      ),
    rollback: async (name: string, ...args: string[]) => {
      const result = await platform.spry(["rollback", name, ...args]);
      expect(result.code, result.stderr).toBe(0);
      return result;
    },
  };
}
