import { defaultPresetsForNodes } from "@spry/function";
import { type ControllerConfig } from "@spry/controller";
import { buildEnvironmentOf } from "./build-environment.ts";
import { type SystemImages } from "./system-images.ts";
import { systemNamespace } from "./system-objects.ts";

/** One machine has one node, and the contract's defaults depend on the number of nodes (docs/compatibility.md#profiles). */
export function controllerConfig(images: SystemImages): ControllerConfig {
  const presets = defaultPresetsForNodes(1);
  return {
    runtimeImages: images.runtimes,
    builderImage: images.builder,
    builderImages: images.builders,
    buildEnvironment: buildEnvironmentOf(process.env),
    baseNamespace: systemNamespace,
    defaultFunctionPreset: presets.function,
    defaultBuildPreset: presets.build,
  };
}
