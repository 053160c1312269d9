/**
 * The parts of a build that are containers of their own, so that the scripts of packages, which are foreign code,
 * run where no Secret is mounted (docs/adr/0009).
 */
import {
  annotations,
  buildPaths,
  type BuildStep,
  dependenciesOf,
  type Function,
  names,
  runtimeOf,
  undeclaredOf,
} from "@spry/function";
import { type Container, type VolumeMount } from "@spry/kube";

const source: VolumeMount = { name: "sources", mountPath: buildPaths.source, readOnly: true };
const scratch: VolumeMount[] = [
  { name: "build", mountPath: buildPaths.scratch },
  { name: "tmp-dir", mountPath: "/tmp" },
];
const secrets: VolumeMount[] = [
  { name: "credentials", mountPath: buildPaths.credentials, readOnly: true },
  { name: "registry-config", mountPath: buildPaths.packageRegistry, readOnly: true },
];
/** Data that the steps pass on: the one with foreign code can only read it. */
const handover: VolumeMount = { name: "handover", mountPath: buildPaths.handover };
const readHandover: VolumeMount = { ...handover, readOnly: true };

/** Of the last step, which is all there is where no foreign code can be met. */
export function pushMounts(fn: Function): VolumeMount[] {
  const isOnly = !mayRunForeignCode(fn);
  return [isOnly ? sourceOfFirst(fn) : source, ...secrets, ...scratch, readHandover];
}

/** A source that is an image is unpacked by the first step, which has the registry's credentials. */
const sourceOfFirst = (fn: Function): VolumeMount =>
  fn.spec.source.image === undefined ? source : { ...source, readOnly: false };

/**
 * Whether a build may meet code that is neither ours nor the Function's: packages, or a build script. A builder that
 * meets some in a Job without these steps refuses to continue.
 */
export function mayRunForeignCode(fn: Function): boolean {
  const { gitRepository, image } = fn.spec.source;
  if (image !== undefined)
    return fn.metadata.annotations?.[annotations.plainSource] !== image.split("@")[1];
  if (gitRepository || undeclaredOf(fn).length > 0) return true;
  const text = dependenciesOf(fn);
  if (runtimeOf(fn).dependencyFile !== "package.json") return /^\s*[^#\s]/m.test(text);
  const fields = ["dependencies", "optionalDependencies", "peerDependencies", "scripts"];
  try {
    const packageJson = JSON.parse(text) as Record<string, unknown>;
    return fields.some((field) => Object.keys(packageJson[field] ?? {}).length > 0);
  } catch {
    // The builder will say what is wrong with it.
    return true;
  }
}

/** Last of a step's arguments. */
export const stepArguments = (step: BuildStep): string[] => ["--step", step];

/** Init containers before the one that pushes, which they are made like. */
export function stepsBefore(push: Container, fn: Function): Container[] {
  const args = (push.args ?? []).slice(0, -stepArguments("push").length);
  const step = (name: string, which: BuildStep, volumeMounts: VolumeMount[]): Container => ({
    ...push,
    name,
    args: [...args, ...stepArguments(which)],
    volumeMounts,
  });
  const scripts = step(names.scriptContainer, "scripts", [source, ...scratch, readHandover]);
  return [
    step(names.dependencyContainer, "fetch", [sourceOfFirst(fn), ...secrets, ...scratch, handover]),
    { ...scripts, env: (push.env ?? []).filter(({ name }) => name !== "DOCKER_CONFIG") },
  ];
}
