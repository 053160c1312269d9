/** OCI images: a registry, its client, layers in and out, and the builder of a Function's image. */

export { type Digest, digestOf, isDigest, parseDigest } from "./digest.ts";
export {
  type ContainerConfig,
  currentPlatform,
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type ImageManifest,
  mediaTypes,
  type Platform,
} from "./manifest.ts";
export { formatImageName, type ImageName, isLoopback, parseImageName } from "./image-name.ts";

/** The server side of the OCI distribution specification. */
export { createRegistry, type Registry, type RegistryOptions } from "./registry/registry.ts";
export { type CleaningResult } from "./registry/cleaning.ts";
export { damagedContent } from "./registry/damaged-content.ts";
export { type BuildGrant, type Grant } from "./registry/access/grants.ts";
export { createLogins, type Login, type Logins } from "./registry/access/logins.ts";
export { type Tenants } from "./registry/access/tenants.ts";
export { type FormerUses } from "./registry/former-names/move-over.ts";
export { type ImagesInUse, type RetentionPolicy } from "./registry/retention.ts";

/** The client side. */
export {
  RegistryClient,
  type RegistryClientOptions,
  type RegistryEndpoint,
  type ResolvedImage,
} from "./client/registry-client.ts";
export { ImageError } from "./client/image-error.ts";
export { RegistryError } from "./client/registry-error.ts";
export { readCertificates, readDockerConfig } from "./client/docker-config.ts";

/** From files to an image in a registry. */
export { createLayer, type Layer, type LayerFile } from "./layer.ts";
export { type AssembledImage, assembleImage, type BaseImage } from "./assemble-image.ts";
export { type Artifact, attachArtifacts } from "./attach-artifact.ts";
export { type LayoutImage, readImageLayout, writeImageLayout } from "./image-layout.ts";
export { type LayerSource, pushImage, type PushResult } from "./push-image.ts";

/** From an image in a registry to files. */
export { type PulledImage, pullImage, type PullOptions, unpackImage } from "./pull-image.ts";
export { type EarlierVersion, type PlacedFile, PlacedFiles } from "./placed-files.ts";
export { unpackLayer, type UnpackLimits } from "./unpack-layer.ts";

/** What else a program of this machine needs. */
export {
  librariesLoadedLater,
  sharedLibrariesOf,
  sharedLibrariesOfAll,
} from "./shared-libraries.ts";
export { shellScripts, shellTools } from "./shell-tools.ts";
export { bytecodeCommand } from "./python-bytecode.ts";

/** The builder of a Function's image. */
export { buildFunctionImage } from "./builder/build-function-image.ts";
export { type BuildOptions } from "./builder/build-options.ts";
export {
  type InstallRequest,
  isInstallationInput,
  planInstallation,
  planProject,
  type PlannedInstallation,
} from "./builder/plan-installation.ts";
export { ownInstallScripts } from "./builder/package-json.ts";
export { UserError as BuildError } from "./builder/user-error.ts";
export { createSourceImage, type SourceImage } from "./builder/source-image.ts";
export { repositoryFiles } from "./builder/source-repository.ts";
export { sourceLimits } from "./builder/function-source.ts";
export { builderEntry } from "./builder/entry.ts";
export { stepScript } from "./builder/step-script.ts";
/** A directory's content, without a way through links. */
export { entriesBelow } from "./entries-below.ts";
