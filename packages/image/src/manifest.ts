import { type Digest } from "./digest.ts";

/** Media types of the OCI image specification 1.1 and their Docker ancestors. */
export const mediaTypes = {
  manifest: "application/vnd.oci.image.manifest.v1+json",
  index: "application/vnd.oci.image.index.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar",
  layerGzip: "application/vnd.oci.image.layer.v1.tar+gzip",
  layerZstd: "application/vnd.oci.image.layer.v1.tar+zstd",
  dockerManifest: "application/vnd.docker.distribution.manifest.v2+json",
  dockerIndex: "application/vnd.docker.distribution.manifest.list.v2+json",
} as const;

/** The largest manifest that is sent, taken or kept: what the distribution specification asks for. */
export const manifestSizeLimit = 4 * 1024 * 1024;

export interface Platform {
  os: string;
  architecture: string;
  variant?: string;
}

export interface Descriptor {
  mediaType: string;
  digest: Digest;
  size: number;
  platform?: Platform;
  artifactType?: string;
  annotations?: Record<string, string>;
}

export interface ImageManifest {
  schemaVersion: 2;
  mediaType?: string;
  artifactType?: string;
  config: Descriptor;
  layers: Descriptor[];
  subject?: Descriptor;
  annotations?: Record<string, string>;
}

export interface ImageIndex {
  schemaVersion: 2;
  mediaType?: string;
  artifactType?: string;
  manifests: Descriptor[];
  subject?: Descriptor;
  annotations?: Record<string, string>;
}

/** What a container of the image runs as: the `config` member of the OCI image configuration. */
export interface ContainerConfig {
  User?: string;
  /** `NAME=value` each. */
  Env?: string[];
  Entrypoint?: string[];
  Cmd?: string[];
  WorkingDir?: string;
  Labels?: Record<string, string>;
  ExposedPorts?: Record<string, object>;
  StopSignal?: string;
}

export interface ImageConfig {
  created?: string;
  architecture: string;
  os: string;
  variant?: string;
  config?: ContainerConfig;
  rootfs: { type: "layers"; diff_ids: Digest[] };
  history?: { created?: string; created_by?: string; empty_layer?: boolean }[];
}

export function isIndex(manifest: ImageManifest | ImageIndex): manifest is ImageIndex {
  return "manifests" in manifest;
}

/** The platform of this machine, in the words of the OCI specification (Go's). */
export function currentPlatform(): Platform {
  const architectures: Record<string, string> = { x64: "amd64", ia32: "386" };
  // A Function's image is for Linux wherever it is built: the process sandbox of any other system
  // only takes its files.
  return { os: "linux", architecture: architectures[process.arch] ?? process.arch };
}

/** The index's entry for the platform; an entry without a platform fits every platform. */
export function selectPlatform(index: ImageIndex, platform: Platform): Descriptor {
  const images = index.manifests.filter((entry) => entry.platform?.os !== "unknown");
  const fits = (entry: Descriptor) =>
    entry.platform?.os === platform.os && entry.platform.architecture === platform.architecture;
  const selected =
    images.find((e) => fits(e) && e.platform?.variant === platform.variant) ??
    images.find(fits) ??
    images.find((entry) => !entry.platform);
  if (selected) return selected;
  const offered = images.map((e) => `${e.platform?.os}/${e.platform?.architecture}`).join(", ");
  throw new Error(
    `no image for ${platform.os}/${platform.architecture}; available: ${offered || "none"}`,
  );
}
