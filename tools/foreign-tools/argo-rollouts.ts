import { existsSync } from "node:fs";
import path from "node:path";
import { modules, sourcesOf } from "./definitions.ts";
import { buildGoProgram, goProgramFile } from "./go-program.ts";

const module = modules["argo-rollouts"];
const programs = {
  controller: { name: "rollouts-controller", module, directory: "./cmd/rollouts-controller" },
  plugin: { name: "kubectl-argo-rollouts", module, directory: "./cmd/kubectl-argo-rollouts" },
};

/** Argo Rollouts' programs and the folder of its definitions; undefined where they have not been built. */
export function argoRollouts():
  | { controller: string; plugin: string; definitions: string }
  | undefined {
  const controller = goProgramFile(programs.controller);
  const plugin = goProgramFile(programs.plugin);
  const sources = sourcesOf("argo-rollouts");
  if (!sources || !existsSync(controller) || !existsSync(plugin)) return undefined;
  return { controller, plugin, definitions: path.join(sources, "manifests/crds") };
}

/** Builds the missing ones; throws when Go fails. */
export function buildArgoRollouts(): void {
  for (const program of Object.values(programs)) buildGoProgram(program);
}
