import { existsSync } from "node:fs";
import path from "node:path";
import { modules, sourcesOf } from "./definitions.ts";
import { buildGoProgram, type GoProgram, goProgramFile } from "./go-program.ts";

const controllers = ["source-controller", "kustomize-controller"] as const;

const programOf = (name: (typeof controllers)[number]): GoProgram => ({
  name,
  module: modules[name],
  directory: ".",
  released: modules[name].replace("@", "/api@"),
});

/** Flux' controllers and the folders of their definitions; undefined where they have not been built. */
export function flux(): { source: string; kustomize: string; definitions: string[] } | undefined {
  const [source = "", kustomize = ""] = controllers.map((name) => goProgramFile(programOf(name)));
  const definitions = controllers.flatMap((name) => {
    const sources = sourcesOf(name);
    return sources === undefined ? [] : [path.join(sources, "config/crd/bases")];
  });
  if (![source, kustomize, ...definitions].every(existsSync)) return undefined;
  return definitions.length < controllers.length ? undefined : { source, kustomize, definitions };
}

/** Builds the missing ones; throws when Go fails. */
export function buildFlux(): void {
  for (const name of controllers) buildGoProgram(programOf(name));
}
