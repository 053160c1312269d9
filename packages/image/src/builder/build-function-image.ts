import { type BuildOptions } from "./build-options.ts";
import { FunctionBuild } from "./function-build.ts";

/**
 * Builds the image of a Function and pushes it: `[base][dependencies][source]`. Returns the
 * image's name by digest. A `UserError` is the author's to put right, any other error is not.
 */
export async function buildFunctionImage(
  options: BuildOptions,
): Promise<{ image: string; sentBytes: number }> {
  const build = await FunctionBuild.open(options, options.scratch);
  const fetched = await build.fetch();
  await build.runScripts(fetched);
  return build.push(fetched);
}
