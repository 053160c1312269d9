import { buildGoProgram, type GoProgram, goProgramFile } from "./go-program.ts";

/** The distribution specification's own tests of registries. */
const suite: GoProgram = {
  name: "oci-conformance",
  module:
    "github.com/opencontainers/distribution-spec/conformance@v0.0.0-20260831232431-97274622c111",
  directory: ".",
};

/** The suite as a program, whether or not it has been built. */
export function ociConformance(): string {
  return goProgramFile(suite);
}

/** Builds it unless it is there; throws when Go fails. */
export function buildOciConformance(): void {
  buildGoProgram(suite);
}
