import { parseArgs, type ParseArgsOptionDescriptor } from "node:util";
import { type BuilderFlag, buildPaths, buildSteps } from "@spry/function";

const usage = `usage: builder --source DIR --runtime NAME --base IMAGE --destination IMAGE
  --dependency-cache REPOSITORY  where dependency layers are kept
  --previous-image DIGEST        of the destination's repository: with the same dependencies, they are the same layer
  --source-image IMAGE           by digest: its one layer is the source, which the step \`fetch\` unpacks to --source
  --source-digest DIGEST         refuse to build anything but this source
  --source-url URL               repository that the image says it is from
  --source-revision ID           commit that the image says it is of
  --base-name IMAGE              what the image calls its base
  --title TEXT                   what the image is called
  --plain-registry HOST          a registry without TLS, such as the cluster's own (repeatable)
  --registry-config DIR          directory with an .npmrc, or a pip.conf
  --scratch DIR                  directory for temporary files
  --step fetch|scripts|push      do this part alone; \`scripts\` needs no credentials
  --handover DIR                 where a step leaves its results for the next one`;

/** What the program's arguments specify. */
export type Flags = ReturnType<typeof readFlags>;

/** Reads the program's arguments. Throws the usage when one is missing or unknown. */
export function readFlags() {
  const text = { type: "string" } as const;
  // Without a root file system of its own, the process finds its volumes below SPRY_ROOT.
  const root = process.env["SPRY_ROOT"] ?? "";
  const { values } = parseArgs({
    options: {
      source: text,
      runtime: text,
      base: text,
      destination: text,
      "dependency-cache": text,
      "previous-image": text,
      "source-digest": text,
      "source-image": text,
      "source-url": text,
      "source-revision": text,
      "base-name": text,
      title: text,
      "plain-registry": { type: "string", multiple: true, default: [] },
      "registry-config": { ...text, default: root + buildPaths.packageRegistry },
      scratch: { ...text, default: root + buildPaths.scratch },
      handover: { ...text, default: root + buildPaths.handover },
      step: text,
    } satisfies Record<BuilderFlag, ParseArgsOptionDescriptor>,
  });
  const { source, runtime, base, destination } = values;
  if (!source || !runtime || !base || !destination) throw new Error(usage);
  const step = buildSteps.find((each) => each === values.step);
  if (values.step !== undefined && step === undefined) throw new Error(usage);
  return { ...values, source, runtime, base, destination, step };
}
