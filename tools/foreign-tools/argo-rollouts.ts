import { existsSync } from "node:fs";
import path from "node:path";
import { modules, sourcesOf } from "./definitions.ts";
import { buildGoProgram, goProgramFile } from "./go-program.ts";

const program = {
  name: "rollouts-controller",
  module: modules["argo-rollouts"],
  directory: "./cmd/rollouts-controller",
};

/** Argo Rollouts' controller and the folder of its definitions; undefined where it has not been built. */
export function argoRollouts(): { controller: string; definitions: string } | undefined {
  const controller = goProgramFile(program);
  const sources = sourcesOf("argo-rollouts");
  if (!sources || !existsSync(controller)) return undefined;
  return { controller, definitions: path.join(sources, "manifests/crds") };
}

/** Builds it unless it is there; throws when Go fails. */
export function buildArgoRollouts(): void {
  buildGoProgram(program);
}
