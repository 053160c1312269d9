/** What an operator may say about an installation: the same names for `spry install --values` and for Helm. */
import { type ServerlessSpec } from "@spry/controller";
import { compareQuantities, loadYaml } from "@spry/kube";
import {
  defaultCleaning,
  type RegistryCleaningSettings,
  whatIsWrong,
} from "../in-cluster/registry-environment.ts";
import { readText } from "../text-file.ts";
import { authorityProblem, pemWayOut, readAuthority } from "../registry-authority.ts";
import { UserError } from "../user-error.ts";
import {
  type DashboardValues,
  dashboardProblem,
  defaultDashboardValues,
} from "./dashboard-values.ts";

export interface InstallValues {
  /** Where Spry itself runs. */
  namespace: string;
  /** By the names of `npm run images`, each by digest. */
  images: Record<string, string>;
  /**
   * Names of Secrets in the namespace (type kubernetes.io/dockerconfigjson), with which the images above are pulled. Builds
   * need them too: every namespace with Functions gets their credentials.
   */
  imagePullSecrets: string[];
  /** Replicas of the controller; one leads, all answer the webhooks. */
  replicas: number;
  /** The most memory of the controller, as a quantity; three fifths of it are its heap's. */
  memory: string;
  registry: {
    /** Whether there is a registry in the cluster. */
    enabled: boolean;
    /** The port of every node by which images are pulled, as `localhost:<port>`. */
    nodePort: number;
    storage: {
      /** `emptyDir` is for trying out: the images go with the registry's Pod. */
      kind: "persistentVolumeClaim" | "emptyDir";
      size: string;
      /** Empty: the cluster's default class. */
      storageClassName: string;
    };
    /** What nothing in the cluster refers to any more is removed, but for this. */
    cleaning: RegistryCleaningSettings;
  };
  gateway: {
    /** Whether there is a gateway. Functions that may go to zero, or split their traffic, need it. */
    enabled: boolean;
    replicas: number;
    /** How it is reached. */
    serviceType: "ClusterIP" | "NodePort" | "LoadBalancer";
  };
  dashboard: DashboardValues;
  eventing: {
    /** Whether events, schedules and Subscriptions are served. Off where Kyma's Eventing module is installed. */
    enabled: boolean;
    /** Of the program that accepts events; one delivers. */
    replicas: number;
    nats: {
      /** Servers of your own (`tls://host:port`), version 2.12 or newer; with any, none are installed. */
      servers: string[];
      /** Whether servers of your own may get the token without TLS (`nats://` instead of `tls://`). */
      allowPlaintext: boolean;
      /** Of the servers that are installed, and of each message: 1 or 3. */
      replicas: number;
      /** nats-server, version 2.12 or newer. */
      image: string;
      storage: {
        size: string;
        /** Empty: the cluster's default class. */
        storageClassName: string;
      };
    };
  };
  /** Registries (`host:port`) that are spoken to without TLS, besides the one in the cluster. */
  plainRegistries: string[];
  /** PEM: the authority of registries with a private one, for builds and the controller. Nodes have their container runtime's own setting. */
  registryCertificateAuthority: string;
  /** Environment variables of builds: proxies, mirrors. */
  buildEnvironment: Record<string, string>;
  /** The spec of the Serverless object that is made with the installation. */
  serverless: ServerlessSpec;
}

export const defaultValues: InstallValues = {
  namespace: "kyma-system",
  images: {},
  imagePullSecrets: [],
  replicas: 1,
  memory: "160Mi",
  registry: {
    enabled: true,
    nodePort: 32137,
    storage: { kind: "persistentVolumeClaim", size: "20Gi", storageClassName: "" },
    cleaning: defaultCleaning,
  },
  gateway: { enabled: true, replicas: 2, serviceType: "ClusterIP" },
  dashboard: defaultDashboardValues,
  eventing: {
    enabled: false,
    replicas: 2,
    nats: {
      servers: [],
      allowPlaintext: false,
      replicas: 1,
      image: "nats:2.15.2",
      storage: { size: "4Gi", storageClassName: "" },
    },
  },
  plainRegistries: [],
  registryCertificateAuthority: "",
  buildEnvironment: {},
  serverless: { dockerRegistry: { enableInternal: true } },
};

const serviceTypes = ["ClusterIP", "NodePort", "LoadBalancer"];
const requiredImages = ["controller", "builder", "nodejs24"];

/** Later files win over earlier ones, field by field. Throws a `UserError` for what cannot be installed. */
export function readValues(
  files: readonly string[],
  {
    namespace,
    registryCa,
  }: { namespace?: string | undefined; registryCa?: string | undefined } = {},
): InstallValues {
  let values: unknown = defaultValues;
  for (const file of files) values = merged(values, parse(file), file);
  const result = { ...(values as InstallValues) };
  if (registryCa !== undefined) result.registryCertificateAuthority = readAuthority(registryCa);
  if (namespace !== undefined) result.namespace = namespace;
  check(result);
  return result;
}

/** The same with all that is optional: what there may be. */
export function withEverything(values: InstallValues): InstallValues {
  const { registry, gateway, dashboard, eventing } = values;
  return {
    ...values,
    eventing: { ...eventing, enabled: true, nats: { ...eventing.nats, servers: [] } },
    registry: {
      ...registry,
      enabled: true,
      storage: { ...registry.storage, kind: "persistentVolumeClaim" },
    },
    gateway: { ...gateway, enabled: true },
    dashboard: { ...dashboard, enabled: true },
  };
}

function parse(file: string): unknown {
  const text = readText(file);
  try {
    return loadYaml(text);
  } catch (error) {
    throw new UserError(`${file} is not valid YAML: ${(error as Error).message}`);
  }
}

/** Maps field by field; a field that nothing reads is a mistake, except in what is free by nature. */
function merged(below: unknown, above: unknown, file: string, at = ""): unknown {
  if (above === undefined || above === null) return below;
  if (!isMap(below)) return above;
  if (!isMap(above)) throw new UserError(`${file}: ${at || "the document"} must be an object`);
  const result: Record<string, unknown> = { ...below };
  const free = ["images", "buildEnvironment", "serverless"].some((name) => at.startsWith(name));
  for (const [name, value] of Object.entries(above)) {
    const path = at ? `${at}.${name}` : name;
    if (!free && !Object.hasOwn(below, name)) {
      const known = Object.keys(below).join(", ");
      throw new UserError(`${file}: unknown field ${path}`, `known fields are ${known}`);
    }
    result[name] = merged(below[name], value, file, path);
  }
  return result;
}

function check(values: InstallValues): void {
  const { images, registry, gateway, dashboard, eventing, serverless, replicas, memory } = values;
  const wanted = [
    ...requiredImages,
    ...(registry.enabled ? ["registry"] : []),
    ...(gateway.enabled ? ["gateway"] : []),
    ...(dashboard.enabled ? ["dashboard"] : []),
    ...(eventing.enabled ? ["eventing"] : []),
  ];
  const missing = wanted.filter((name) => !images[name]);
  if (missing.length > 0) {
    throw new UserError(
      `no image is given for ${missing.join(", ")}`,
      "npm run images -- --to REGISTRY --values FILE makes them; name that file with --values",
    );
  }
  const loose = Object.entries(images).filter(([, image]) => !/@sha256:[0-9a-f]{64}$/.test(image));
  if (loose.length > 0) {
    throw new UserError(
      `the image of ${loose.map(([name]) => name).join(", ")} is not given by digest`,
      "images are pinned: registry/name@sha256:...",
    );
  }
  const kinds = ["persistentVolumeClaim", "emptyDir"];
  if (!kinds.includes(registry.storage.kind)) {
    throw new UserError(
      `registry.storage.kind ${registry.storage.kind} is not known`,
      `use ${kinds.join(" or ")}; for a directory of a node, create a PersistentVolume`,
    );
  }
  if (eventing.nats.replicas !== 1 && eventing.nats.replicas !== 3) {
    throw new UserError(
      `eventing.nats.replicas ${eventing.nats.replicas}is not 1, or 3 for a quorum`,
    );
  }
  for (const count of [replicas, gateway.replicas, dashboard.replicas, eventing.replicas]) {
    if (Number.isInteger(count) && count >= 1) continue;
    throw new UserError(`${count} replicas: not a whole number from 1`);
  }
  if (!isEnough(memory))
    throw new UserError(`memory ${memory}: not a quantity from ${leastMemory}`);
  if (!serviceTypes.includes(gateway.serviceType)) {
    throw new UserError(
      `gateway.serviceType ${gateway.serviceType} is not known`,
      `use ${serviceTypes.join(" or ")}`,
    );
  }
  if (registry.nodePort < 1 || registry.nodePort > 65535) {
    throw new UserError(`registry.nodePort ${registry.nodePort} is not a valid port`);
  }
  const authority = authorityProblem(values.registryCertificateAuthority);
  if (authority) throw new UserError(`registryCertificateAuthority ${authority}`, pemWayOut);
  const unusable = dashboardProblem(dashboard);
  if (unusable) throw new UserError(...unusable);
  const wrong = whatIsWrong(registry.cleaning);
  if (wrong) throw new UserError(`registry.cleaning.${wrong}`);
  if (!registry.enabled && serverless.dockerRegistry?.enableInternal !== false) {
    throw new UserError(
      "registry.enabled is false, and serverless.dockerRegistry.enableInternal is not",
      "set it to false, and secretName to a Secret with the registry that is to be used",
    );
  }
}

/** What its Deployment requests: Kubernetes refuses a limit below that. */
export const leastMemory = "96Mi";

function isEnough(memory: unknown): boolean {
  if (typeof memory !== "string") return false;
  try {
    return compareQuantities(memory, leastMemory) >= 0;
  } catch {
    return false;
  }
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
