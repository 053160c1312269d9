import { type RegistryClient } from "../client/registry-client.ts";
import { type Digest } from "../digest.ts";
import { type LayerFile } from "../layer.ts";
import { type ContainerConfig } from "../manifest.ts";
import { type Monorepo } from "./monorepo.ts";

/** A repository's URL, a commit, and when that was made (RFC 3339). */
export interface Origin {
  url?: string | undefined;
  revision?: string | undefined;
  created?: string | undefined;
}

export interface BuildOptions {
  client: RegistryClient;
  /** Directory with the Function's files. */
  source: string;
  /** `nodejs24`, say. */
  runtime: string;
  /** Runtime image to build on, see `openBase`. */
  base: string;
  /** What the image calls its base, where `base` is only this machine's way to it. */
  baseName?: string | undefined;
  /** The runtime's layer, for a base that has none. */
  runtimeLayer?: { files: LayerFile[]; config: ContainerConfig } | undefined;
  /** Name with tag to push to. */
  destination: string;
  /** Repository for dependency layers; by default next to the destination. */
  dependencyCache?: string | undefined;
  /** Digest of the Function's image before, in the destination's repository: what is reused is compared with it. */
  previousImage?: Digest | undefined;
  /** What the files must be, see `sourceDigest`; anything else fails with nothing pushed. */
  sourceDigest?: string | undefined;
  /** An `.npmrc` with registries and credentials. */
  npmConfig?: string | undefined;
  /** A `pip.conf` with indexes and credentials. */
  pipConfig?: string | undefined;
  /** What the image is called where people see it. */
  title?: string | undefined;
  /** The origin of the files, which the image records. */
  origin?: Origin;
  /** The rest of the repository that the source is from, as far as it is part of it. */
  monorepo?: Monorepo | undefined;
  /** Files that Node.js can run have been made of TypeScript already, as `spry deploy` does. */
  isCompiled?: boolean | undefined;
  /** A directory of this build alone. */
  scratch: string;
  /** Gets progress, a line each. */
  report?: (line: string) => void;
}
