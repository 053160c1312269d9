/**
 * Before the files of test/e2e: with `SPRY_TEST_ENGINE=cluster` a real Kubernetes with Spry installed, one for all of them.
 * What it takes to use it, or why there is none, is handed to them. On one machine, a template of platforms instead.
 */
import { type TestProject } from "vitest/node";
import { type ClusterPlace, startClusterPlace } from "./cluster-place.ts";
import { whyNoInstallation } from "./installed-cluster.ts";
import { offerTemplate } from "./offer-template.ts";

declare module "vitest" {
  interface ProvidedContext {
    engine: "machine" | "cluster";
    place: ClusterPlace | undefined;
    /** Why no test of a whole platform can run. */
    noPlace: string | undefined;
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const engine = process.env["SPRY_TEST_ENGINE"] ?? "machine";
  if (engine !== "machine" && engine !== "cluster") {
    throw new Error(`SPRY_TEST_ENGINE=${engine}: it is machine (the default) or cluster`);
  }
  const reason = engine === "cluster" ? whyNoInstallation() : undefined;
  const started = engine === "cluster" && !reason ? await startClusterPlace() : undefined;
  project.provide("engine", engine);
  project.provide("noPlace", reason);
  project.provide("place", started?.place);
  const template = engine === "machine" ? offerTemplate() : undefined;
  return async () => {
    await template?.();
    await started?.stop();
  };
}
