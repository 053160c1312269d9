import {
  type Condition,
  type KubeObject,
  type ObjectMeta,
  type PodSpec,
  type Resource,
} from "@spry/kube/browser";

/**
 * `serving.knative.dev/v1`: what the room `serving` serves, the gateway routes by and the Function Controller asks for
 * (Knative Serving API specification; fields as in `knative.dev/serving/pkg/apis/serving/v1`).
 */

/** A Knative Service: owns a Configuration and a Route of its name. */
export interface KService extends KubeObject {
  spec: ConfigurationSpec & RouteSpec;
  status?: ServingStatus & RouteStatusFields & ConfigurationStatusFields;
}

export interface Configuration extends KubeObject {
  spec: ConfigurationSpec;
  status?: ServingStatus & ConfigurationStatusFields;
}

/** Immutable: one version of a Configuration's template. */
export interface Revision extends KubeObject {
  spec: RevisionSpec;
  status?: ServingStatus & RevisionStatusFields;
}

export interface Route extends KubeObject {
  spec: RouteSpec;
  status?: ServingStatus & RouteStatusFields;
}

export interface ConfigurationSpec {
  template: RevisionTemplate;
}

export interface RevisionTemplate {
  metadata?: Pick<ObjectMeta, "name" | "labels" | "annotations">;
  spec: RevisionSpec;
}

/** The permitted part of a Pod's spec, and what requests may expect. */
export interface RevisionSpec extends PodSpec {
  /** Requests that one Pod handles at a time; 0 has no limit. */
  containerConcurrency?: number;
  /** Until a request has to be answered whole. */
  timeoutSeconds?: number;
  /** Until the first byte of an answer. */
  responseStartTimeoutSeconds?: number;
  /** Without a byte in either direction; 0 has no limit. */
  idleTimeoutSeconds?: number;
}

export interface RouteSpec {
  traffic?: TrafficTarget[];
}

/** In a spec: a share of the requests. In a status: the same, with the Revision that gets it. */
export interface TrafficTarget {
  /** A host of its own: `<tag>-<name>.<namespace>.<domain>`. */
  tag?: string;
  revisionName?: string;
  configurationName?: string;
  latestRevision?: boolean;
  /** 0 to 100; those of a Route add up to 100. */
  percent?: number;
  /** In a status only, and for tags only. */
  url?: string;
}

/** `serving.knative.dev/v1beta1`: its name is a host, which leads to a Service or a Route of its namespace. */
export interface DomainMapping extends KubeObject {
  spec: {
    ref: { apiVersion?: string; kind: string; name: string; namespace?: string };
    /** Certificates of its own; not served. */
    tls?: { secretName: string };
  };
  status?: ServingStatus & { url?: string; address?: { url?: string } };
}

/** Besides `Ready`, which follows from them. */
export const domainMappingConditions = {
  certificateProvisioned: "CertificateProvisioned",
  domainClaimed: "DomainClaimed",
  ingressReady: "IngressReady",
  referenceResolved: "ReferenceResolved",
} as const;

export interface ServingStatus {
  observedGeneration?: number;
  conditions?: Condition[];
  annotations?: Record<string, string>;
}

export interface ConfigurationStatusFields {
  latestCreatedRevisionName?: string;
  latestReadyRevisionName?: string;
}

export interface RouteStatusFields {
  url?: string;
  address?: { url?: string };
  /** Each entry with a Revision's name; empty as long as none of them can be routed to. */
  traffic?: TrafficTarget[];
}

export interface RevisionStatusFields {
  containerStatuses?: { name?: string; imageDigest?: string }[];
  initContainerStatuses?: { name?: string; imageDigest?: string }[];
  actualReplicas?: number;
  desiredReplicas?: number;
  logUrl?: string;
}

function serving<T extends KubeObject>(kind: string, plural: string): Resource<T> {
  return { group: "serving.knative.dev", version: "v1", kind, plural, namespaced: true };
}

export const knative = {
  services: serving<KService>("Service", "services"),
  configurations: serving<Configuration>("Configuration", "configurations"),
  revisions: serving<Revision>("Revision", "revisions"),
  routes: serving<Route>("Route", "routes"),
} as const;

export const domainMappings: Resource<DomainMapping> = {
  ...serving<DomainMapping>("DomainMapping", "domainmappings"),
  version: "v1beta1",
};
