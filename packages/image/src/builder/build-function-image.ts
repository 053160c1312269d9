import { type BuildOptions } from "./build-options.ts";
import { type SourceFile } from "./function-source.ts";
import { FunctionBuild } from "./function-build.ts";

/**
 * Builds the image of a Function and pushes it: `[base][dependencies][source]`. Returns the
 * image's name by digest. A `UserError` is the author's to put right, any other error is not. `files`: the
 * source, where it is not to be read from `options.source`.
 */
export async function buildFunctionImage(
  options: BuildOptions,
  files?: readonly SourceFile[],
): Promise<{ image: string; sentBytes: number }> {
  const build = await FunctionBuild.open(options, options.scratch, files);
  const fetched = await build.fetch();
  await build.runScripts(fetched);
  return build.push(fetched);
}
