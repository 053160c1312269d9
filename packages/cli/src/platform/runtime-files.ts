import path from "node:path";
import { type Runtime } from "@spry/function";
import { type ContainerConfig, type LayerFile } from "@spry/image";
import { entry as runtimeEntry, providedFiles } from "@spry/runtime-nodejs";
import { pythonEntrypoint, pythonRuntime } from "./python-runtime.ts";
import { Bundle } from "./bundle.ts";

/** A runtime's files and how it is started, as they lie below a Function in its image. */
export async function runtimeFilesOf(
  { language }: Runtime,
  scratch: string,
): Promise<{ files: LayerFile[]; config: ContainerConfig }> {
  const config = { WorkingDir: "/usr/src/app/function" };
  if (language === "python")
    return { files: pythonRuntime(), config: { ...config, Entrypoint: pythonEntrypoint } };
  const bundle = new Bundle(runtimeEntry, path.join(scratch, "server.cjs"));
  try {
    const files = await nodeRuntime(bundle);
    return { files, config: { ...config, Entrypoint: ["node", "/usr/src/app/server.cjs"] } };
  } finally {
    await (await import("esbuild")).stop();
  }
}

/** Of the bundled runtime and what it provides, as they lie in an image. */
export async function nodeRuntime(bundle: { content(): Promise<Buffer> }): Promise<LayerFile[]> {
  const files = [{ path: "server.cjs", content: await bundle.content() }, ...providedFiles];
  return files.map(({ path: file, content }) => ({ path: `usr/src/app/${file}`, content }));
}
