import { existsSync } from "node:fs";
import path from "node:path";
import { modules, sourcesOf } from "./definitions.ts";
import { buildGoProgram, goProgramFile } from "./go-program.ts";

const program = {
  name: "cert-manager-controller",
  module: modules["cert-manager-programs"],
  directory: "./cmd/controller",
};

/** cert-manager's controller and the folder of its definitions; undefined where it has not been built. */
export function certManager(): { controller: string; definitions: string } | undefined {
  const controller = goProgramFile(program);
  const sources = sourcesOf("cert-manager-programs");
  if (!sources || !existsSync(controller)) return undefined;
  return { controller, definitions: path.join(sources, "deploy/crds") };
}

/** Builds it unless it is there; throws when Go fails. */
export function buildCertManager(): void {
  buildGoProgram(program);
}
