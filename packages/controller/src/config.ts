import {
  type BuildPreset,
  type FunctionPreset,
  historyLimits,
  type ScaleConfig,
} from "@spry/function";

/** What an operator may set. Everything with a default may be left out. */
export interface ControllerConfig {
  /**
   * The base image of each runtime, by the runtime's name. Runtimes that are not here are refused.
   */
  runtimeImages: Readonly<Record<string, string>>;
  /** The image of build Jobs. It has `sh`, which runs `/opt/spry/builder.sh`, and `node`, which runs `/opt/spry/builder.cjs`. */
  builderImage: string;
  /** Builders of runtimes that need another one, with an installer for their language, by the runtime's name. */
  builderImages?: Readonly<Record<string, string>>;
  /**
   * Where registry Secret and ServiceAccount are that every namespace gets. Default `kyma-system`.
   */
  baseNamespace?: string;
  /** Whether those Secrets wait, at their deletion, until their copies are gone. Default no. */
  holdsRegistrySecrets?: boolean;
  /** Namespaces that get no copies; the base namespace never does. */
  excludedNamespaces?: readonly string[];
  /** For Functions that name neither profile nor resources. Default `L`. */
  defaultFunctionPreset?: FunctionPreset;
  /** The same for their builds. Default `normal`. */
  defaultBuildPreset?: BuildPreset;
  /** Builds at a time, in the whole cluster. Default 5. */
  maxSimultaneousBuilds?: number;
  /**
   * Environment variables of builds, for what stands between them and the package registries:
   * `HTTPS_PROXY`, `npm_config_registry`, `npm_config_cafile`, `PIP_INDEX_URL`. Default none.
   */
  buildEnvironment?: Readonly<Record<string, string>>;
  /** Secrets of the base namespace with which the images above are pulled: builds get their credentials. Default none. */
  imagePullSecrets?: readonly string[];
  /** Registries (`host:port`) that builders speak to without TLS, besides the platform's own. Default none. */
  plainRegistries?: readonly string[];
  /** Certificates (PEM) of an authority that builders trust at every registry. Default none. */
  registryAuthority?: string;
  /** How often the references of Git sources are checked, unless a Function says. Default 60. */
  gitCheckIntervalSeconds?: number;
  /**
   * Host names and networks of Git servers that are asked although they are on loopback, link-local or the platform's
   * own addresses. Default none.
   */
  gitAllowedAddresses?: readonly string[];
  /** Git servers asked at a time. Default 4. */
  maxSimultaneousGitChecks?: number;
  /** A build that takes longer is ended and run again. Default 900. */
  buildTimeoutSeconds?: number;
  /** How long finished build Jobs (and their logs) are kept. Default 600. */
  jobTtlSeconds?: number;
  /** Revisions of a Function that its history keeps, 1 to 100. Default 10. */
  historyLimit?: number;
  /** Functions worked on at a time. Default 4. */
  workers?: number;
  /** Bounds of new Functions that have none; with a minimum of 0 they are served on demand. Default none. */
  defaultScaleConfig?: ScaleConfig | undefined;
  /** CPU utilisation that autoscaling aims at, in percent of the request. Default 50. */
  targetCpuUtilization?: number;
  /** OTLP/HTTP address that Functions send traces to. Default none. */
  traceCollectorEndpoint?: string;
  /** Where Functions publish events. Default: the eventing proxy in the base namespace. */
  publisherProxyAddress?: string;
}

export type Settings = Required<Omit<ControllerConfig, "defaultScaleConfig">> &
  Pick<ControllerConfig, "defaultScaleConfig">;

const excludedByDefault = ["istio-system", "kube-node-lease", "kube-public", "kube-system"];

export function settingsOf(config: ControllerConfig): Settings {
  const baseNamespace = config.baseNamespace ?? "kyma-system";
  return {
    baseNamespace,
    holdsRegistrySecrets: false,
    excludedNamespaces: excludedByDefault,
    defaultFunctionPreset: "L",
    defaultBuildPreset: "normal",
    builderImages: {},
    buildEnvironment: {},
    imagePullSecrets: [],
    plainRegistries: [],
    registryAuthority: "",
    maxSimultaneousBuilds: 5,
    gitCheckIntervalSeconds: 60,
    maxSimultaneousGitChecks: 4,
    gitAllowedAddresses: [],
    buildTimeoutSeconds: 900,
    jobTtlSeconds: 600,
    historyLimit: historyLimits.default,
    workers: 4,
    targetCpuUtilization: 50,
    traceCollectorEndpoint: "",
    publisherProxyAddress: `http://eventing-publisher-proxy.${baseNamespace}.svc.cluster.local/publish`,
    ...config,
  };
}
