import {
  type Condition,
  type EnvVar,
  type KubeObject,
  type PodSpec,
  type Container,
  type Resource,
  type ResourceRequirements,
} from "@spry/kube/browser";
import { type ConditionType, type HealthConditionType, type Reason } from "./conditions.ts";

/** `serverless.kyma-project.io/v1alpha2 Function`. */
export interface Function extends KubeObject {
  spec: FunctionSpec;
  status?: FunctionStatus;
}

export interface FunctionSpec {
  /** A name of the `runtimes` table. Absent means the default runtime. */
  runtime?: string;
  /** Replaces the runtime's base image in the build. */
  runtimeImageOverride?: string;
  /** Exactly one of the three. */
  source: {
    inline?: InlineSource;
    gitRepository?: GitRepositorySource;
    /** Ours: an image with one layer of files, by digest, in the Function's own repository (docs/adr/0019-sources-as-images.md). */
    image?: string;
  };
  env?: EnvVar[];
  resourceConfiguration?: { function?: ResourceProfile; build?: ResourceProfile };
  scaleConfig?: ScaleConfig;
  /** Ours: how many requests a Pod is meant to handle at a time. */
  concurrency?: Concurrency;
  /** Ours: until a request has to be answered. */
  timeoutSeconds?: number;
  /** Ours: which revisions get which share of the requests. Absent: the latest gets all. */
  traffic?: TrafficShare[];
  /** Ours: when the Function is called by itself. */
  schedules?: FunctionSchedule[];
  /** What scalers write, through the scale subresource. */
  replicas?: number;
  secretMounts?: SecretMount[];
  /** Of the Pods. */
  labels?: Record<string, string>;
  /** Of the Pods. */
  annotations?: Record<string, string>;
  /** Only there to be refused with a message. */
  template?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  podSecurityContext?: NonNullable<PodSpec["securityContext"]>;
  containerSecurityContext?: NonNullable<Container["securityContext"]>;
}

/** A call of the Function at certain times, without a Pod that waits for them. */
export interface FunctionSchedule {
  name: string;
  /** Five fields, or a nickname such as `@daily`. */
  cron: string;
  /** A name of the IANA database; UTC by default. */
  timeZone?: string;
  suspend?: boolean;
  /** What happens when the run before has not ended; `Allow` by default. */
  overlap?: "Allow" | "Skip";
  /** A run that is later than this is missed; 300 by default. */
  startingDeadlineSeconds?: number;
  /** The request's body. */
  payload?: string;
  contentType?: string;
  path?: string;
  /** After a run that has failed; 0 by default. */
  retries?: number;
}

export interface InlineSource {
  source: string;
  /** `package.json` or `requirements.txt`. */
  dependencies?: string;
}

export interface GitRepositorySource {
  url: string;
  auth?: { type: "basic" | "key"; secretName: string };
  baseDir: string;
  reference: string;
}

/** A preset by name, or resources in full. */
export interface ResourceProfile {
  profile?: string;
  resources?: ResourceRequirements;
}

export interface ScaleConfig {
  minReplicas: number;
  maxReplicas: number;
}

export interface Concurrency {
  /** What scaling aims at. */
  target?: number;
  /** What a Pod never gets more of; more requests wait. */
  limit?: number;
}

/** A share of a Function's requests: `revision` by its number, or the latest. */
export interface TrafficShare {
  revision?: number;
  latest?: boolean;
  /** 0 to 100; those of a Function add up to 100. */
  percent?: number;
  /** A host of its own: `<tag>-<name>.<namespace>`. */
  tag?: string;
}

export interface SecretMount {
  secretName: string;
  mountPath: string;
}

export interface FunctionCondition extends Condition {
  type: ConditionType | HealthConditionType;
  reason: Reason;
  message: string;
}

export interface FunctionStatus {
  /** The one that changed last comes first. */
  conditions?: FunctionCondition[];
  observedGeneration?: number;
  runtime?: string;
  /** The base image of the build: the runtime's, or the override. */
  runtimeImage?: string;
  commit?: string;
  reference?: string;
  baseDir?: string;
  /** The Git source in use: the three above, and where they are from. */
  gitRepository?: { url: string; reference: string; baseDir: string; commit: string };
  replicas?: number;
  /** Selector of the Pods, in text form, for the scale subresource. */
  podSelector?: string;
  /** When requests last got it Pods, after it had none (RFC 3339). */
  lastColdStart?: string;
  functionResourceProfile?: string;
  buildResourceProfile?: string;
  build?: BuildStatus;
  /** Ours: the number of the newest revision of the history that has become ready; it serves. */
  revision?: number;
}

/** The newest build, in the object so that no restart repeats it. */
export interface BuildStatus {
  /** The build key of what is being built, or was. */
  key: string;
  /** By digest; set once the build has succeeded. */
  image?: string;
  /** Consecutive builds of this key that failed because of the environment. */
  failures?: number;
  /** When a build that failed because of the environment is run again. */
  retryAfter?: string;
  /** The demand (`retryDemandOf`) that the newest attempt has answered. */
  retriedFor?: string;
}

/** How Functions are addressed on the wire. */
export const functions: Resource<Function> = {
  group: "serverless.kyma-project.io",
  version: "v1alpha2",
  kind: "Function",
  plural: "functions",
  namespaced: true,
};
