/** A real cluster with Spry installed, its gateway, and package registries that builds reach. */
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type KubeClient, resources, type Service } from "@spry/kube";
import { dump, load } from "js-yaml";
import { findPython } from "@spry/machine";
import { gatewayExtension } from "../../packages/cli/src/platform/kubeconfig.ts";
import { controllerLabels } from "../../packages/cli/src/install/controller.ts";
import { gatewayName } from "../../packages/cli/src/install/gateway.ts";
import { InstalledCluster } from "./installed-cluster.ts";
import { type PackageMirror, startPackageMirror, startPythonMirror } from "./package-mirror.ts";

const system = "kyma-system";

/** Plain values: they go from one process of the test runner to another. */
export interface ClusterPlace {
  kubeconfig: string;
  /** Of the gateway, NodePorts. */
  gateway: string;
  gatewayTls: string;
  /** Where Git servers send pushes. */
  webhooks: string;
  /** This machine, as Pods see it. */
  hostAddress: string;
  /** Directories on this machine: of the registry, and of what the kubelet keeps of Pods. */
  registryFiles: string;
  podFiles: string[];
}

/** Takes about a minute; `stop` leaves nothing of it. */
export async function startClusterPlace(): Promise<{
  place: ClusterPlace;
  stop(): Promise<void>;
}> {
  const cluster = new InstalledCluster();
  const mirrors: PackageMirror[] = [];
  const stop = async () => {
    for (const mirror of mirrors) mirror.close();
    await cluster.stop();
  };
  try {
    const python = (await findPython("3.12")) ? ["python312", "builder-python312"] : [];
    await cluster.start({ moreImages: python });
    const npm = await startPackageMirror(cluster.hostAddress);
    const pip = await startPythonMirror(cluster.hostAddress);
    mirrors.push(npm, ...(pip ? [pip] : []));
    const buildEnvironment = {
      npm_config_registry: npm.url,
      ...(pip && { PIP_INDEX_URL: pip.url, PIP_TRUSTED_HOST: new URL(pip.url).host }),
    };
    const values = path.join(cluster.scratch, "journeys.json");
    writeFileSync(
      values,
      JSON.stringify({ buildEnvironment, gateway: { enabled: true, serviceType: "NodePort" } }),
    );
    const { code, stderr } = await cluster.install("--values", values);
    if (code !== 0) throw new Error(`installing: ${stderr}`);
    const { client, nodeAddress } = cluster;
    const target = { namespace: system, name: gatewayName };
    const service = await client.get(resources.services, target);
    const [http, https] = service.spec?.ports ?? [];
    const gateway = `http://${nodeAddress}:${http?.nodePort}/`;
    const gatewayTls = `https://${nodeAddress}:${https?.nodePort}/`;
    const webhooks = `http://${nodeAddress}:${await offerPushes(client)}`;
    return { place: { ...placeOf(cluster, gateway), gateway, gatewayTls, webhooks }, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function placeOf(
  cluster: InstalledCluster,
  gateway: string,
): Omit<ClusterPlace, "gateway" | "gatewayTls" | "webhooks"> {
  const kubeconfig = path.join(cluster.scratch, "kubeconfig");
  const config = load(readFileSync(cluster.kubeconfig, "utf8")) as {
    clusters: { cluster: { extensions?: object[] } }[];
  };
  // As an operator would, so that `spry` finds Functions.
  const extension = { name: gatewayExtension, extension: { url: gateway } };
  for (const each of config.clusters) each.cluster.extensions = [extension];
  writeFileSync(kubeconfig, dump(config), { mode: 0o600 });
  return {
    kubeconfig,
    hostAddress: cluster.hostAddress,
    registryFiles: cluster.volumes,
    podFiles: ["lib/kubelet/pods", "log/pods"].map((each) => path.join(cluster.nodeFiles, each)),
  };
}

/** Git servers of the tests are outside the cluster; elsewhere an Ingress lets them in. Resolves with the node's port. */
async function offerPushes(client: KubeClient): Promise<number> {
  const ports = [{ name: "http", port: 80, targetPort: "git" }];
  const { spec } = await client.create<Service>(resources.services, {
    metadata: { namespace: system, name: "pushes-of-the-test" },
    spec: { type: "NodePort", selector: controllerLabels, ports },
  });
  return spec?.ports?.[0]?.nodePort ?? 0;
}
