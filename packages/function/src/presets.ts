import { type ResourceRequirements } from "@spry/kube/browser";
import { type ResourceProfile } from "./types.ts";

type Amounts = [requestCpu: string, requestMemory: string, limitCpu: string, limitMemory: string];

function preset([cpu, memory, limitCpu, limitMemory]: Amounts): ResourceRequirements {
  return { requests: { cpu, memory }, limits: { cpu: limitCpu, memory: limitMemory } };
}

/** Named resources, by what they are for (docs/compatibility.md#profiles). */
export const presets = {
  function: {
    XS: preset(["50m", "64Mi", "100m", "128Mi"]),
    S: preset(["100m", "128Mi", "200m", "256Mi"]),
    M: preset(["200m", "256Mi", "400m", "512Mi"]),
    L: preset(["400m", "512Mi", "800m", "1Gi"]),
    XL: preset(["800m", "1Gi", "1600m", "2Gi"]),
  },
  build: {
    "local-dev": preset(["200m", "200Mi", "400m", "400Mi"]),
    slow: preset(["200m", "200Mi", "700m", "700Mi"]),
    normal: preset(["500m", "700Mi", "1100m", "1100Mi"]),
    fast: preset(["900m", "1100Mi", "1700m", "1100Mi"]),
  },
} as const satisfies Record<string, Record<string, ResourceRequirements>>;

export type PresetKind = keyof typeof presets;
export type FunctionPreset = keyof typeof presets.function;
export type BuildPreset = keyof typeof presets.build;

export interface DefaultPresets {
  function: FunctionPreset;
  build: BuildPreset;
}

/** The default presets of a cluster of this size. */
export function defaultPresetsForNodes(nodes: number): DefaultPresets {
  return nodes <= 2 ? { function: "XS", build: "slow" } : { function: "L", build: "normal" };
}

/** The desired resources, and the profile's name as the status shows it. */
export function resolveResources(
  kind: PresetKind,
  asked: ResourceProfile | undefined,
  defaultPreset: string,
): { profile: string; resources: ResourceRequirements } {
  const table: Record<string, ResourceRequirements> = presets[kind];
  const profile = asked?.profile ?? "";
  const named = Object.hasOwn(table, profile) ? table[profile] : undefined;
  if (named) return { profile, resources: named };
  if (asked?.resources) return { profile: "custom", resources: asked.resources };
  return { profile: defaultPreset, resources: table[defaultPreset] ?? {} };
}
