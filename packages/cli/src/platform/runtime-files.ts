import { type Runtime } from "@spry/function";
import { type ContainerConfig, type LayerFile } from "@spry/image";
import { nodeEntrypoint, NodeRuntime } from "./node-runtime.ts";
import { pythonEntrypoint, pythonRuntime } from "./python-runtime.ts";

/** A runtime's files and how it is started, as they lie below a Function in its image. */
export async function runtimeFilesOf({
  language,
}: Runtime): Promise<{ files: LayerFile[]; config: ContainerConfig }> {
  const config = { WorkingDir: "/usr/src/app/function" };
  if (language === "python")
    return { files: pythonRuntime(), config: { ...config, Entrypoint: pythonEntrypoint } };
  try {
    const files = await new NodeRuntime().files();
    return { files, config: { ...config, Entrypoint: nodeEntrypoint } };
  } finally {
    await (await import("esbuild")).stop();
  }
}
