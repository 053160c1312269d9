import { existsSync } from "node:fs";
import path from "node:path";
import { modules, sourcesOf } from "./definitions.ts";
import { buildGoProgram, goProgramFile } from "./go-program.ts";

const programs = {
  operator: { name: "keda-operator", module: modules.keda, directory: "./cmd/operator" },
  adapter: { name: "keda-adapter", module: modules.keda, directory: "./cmd/adapter" },
};

/** KEDA's programs and the folder of its manifests; undefined where they have not been built. */
export function keda(): { operator: string; adapter: string; config: string } | undefined {
  const operator = goProgramFile(programs.operator);
  const adapter = goProgramFile(programs.adapter);
  const sources = sourcesOf("keda");
  if (!sources || !existsSync(operator) || !existsSync(adapter)) return undefined;
  return { operator, adapter, config: path.join(sources, "config") };
}

/** Builds the missing ones; throws when Go fails. */
export function buildKeda(): void {
  for (const program of Object.values(programs)) buildGoProgram(program);
}
