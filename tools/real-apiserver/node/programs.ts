/** How containerd, kubelet and kube-proxy are set up: the defaults of a real node, except where the comment says why not. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { binaryOf } from "../binaries.ts";
import { layout } from "../components.ts";
import { isCgroupV1 } from "./kernel.ts";
import { pauseImage } from "./images.ts";
import { clusterDns, type NodeNetwork, podCidr } from "./network.ts";
import { cniDir } from "./requirements.ts";

export const nodeName = "node";
export const containerdSocket = "/run/containerd/containerd.sock";

/** Every program's arguments. */
export interface NodeCommands {
  containerd: string[];
  kubelet: string[];
  "kube-proxy": string[];
}

export type NodeProgram = keyof NodeCommands;

/** Of the machine, or built from its module. */
export const fileOf = (program: NodeProgram): string =>
  program === "containerd" ? program : binaryOf(program);

export function configureNode(dir: string, network: NodeNetwork, cgroup: string): void {
  const file = (name: string) => path.join(dir, name);
  mkdirSync(file("cni"));
  mkdirSync(file("registries"));
  writeFileSync(file("cni/10-bridge.conflist"), JSON.stringify(bridge(), undefined, 2));
  writeFileSync(file("resolv.conf"), resolvConf());
  writeFileSync(file("containerd.toml"), containerdConfig(dir));
  const yaml = (name: string, value: unknown) =>
    writeFileSync(file(name), JSON.stringify(value, undefined, 2));
  yaml("kubelet.yaml", kubeletConfig(dir, cgroup));
  yaml("kube-proxy.yaml", proxyConfig(dir, network));
}

/** Of a node that has been configured. */
export function nodeCommands(dir: string, network: NodeNetwork): NodeCommands {
  const file = (name: string) => path.join(dir, name);
  return {
    containerd: [`--config=${file("containerd.toml")}`],
    kubelet: [
      `--config=${file("kubelet.yaml")}`,
      `--kubeconfig=${layout(dir).kubeconfigOf("kubelet")}`,
      `--hostname-override=${nodeName}`,
      `--node-ip=${network.address}`,
    ],
    "kube-proxy": [`--config=${file("kube-proxy.yaml")}`],
  };
}

function containerdConfig(dir: string): string {
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
address = "${containerdSocket}"

[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "${pauseImage}"
# Without CAP_SYS_RESOURCE a process may make no other one less likely to be ended than itself.
restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "${cniDir()}"
conf_dir = "${path.join(dir, "cni")}"

[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "${path.join(dir, "registries")}"
`;
}

/** From now on the node pulls from this registry (`host:port`) without TLS. */
export function allowPlainRegistry(dir: string, host: string): void {
  const place = path.join(dir, "registries", host);
  mkdirSync(place, { recursive: true });
  // containerd 1.6 takes no file without a table of hosts.
  const table = `[host."http://${host}"]\ncapabilities = ["pull", "resolve"]\n`;
  writeFileSync(path.join(place, "hosts.toml"), `server = "http://${host}"\n\n${table}`);
}

/** Pods of one node on one bridge, and behind the node's address when they call out. */
function bridge() {
  return {
    cniVersion: "0.4.0",
    name: "pods",
    plugins: [
      {
        type: "bridge",
        bridge: "cni0",
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          ranges: [[{ subnet: podCidr }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  };
}

/** The machine's name servers as far as a Pod can reach them: a loopback address is another place there. */
export function nameServers(): string[] {
  const file = "/etc/resolv.conf";
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  return lines.flatMap((line) => {
    const address = /^nameserver\s+(\S+)/.exec(line)?.[1];
    return address && !/^(127\.|::1$)/.test(address) ? [address] : [];
  });
}

const resolvConf = () =>
  nameServers()
    .map((address) => `nameserver ${address}\n`)
    .join("");

function kubeletConfig(dir: string, cgroup: string) {
  const { certificate, key } = layout(dir);
  return {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: certificate("ca") },
    },
    authorization: { mode: "Webhook" },
    tlsCertFile: certificate("kubelet-serving"),
    tlsPrivateKeyFile: key("kubelet-serving"),
    clusterDNS: [clusterDns],
    clusterDomain: "cluster.local",
    resolvConf: path.join(dir, "resolv.conf"),
    containerRuntimeEndpoint: `unix://${containerdSocket}`,
    cgroupDriver: "cgroupfs",
    cgroupRoot: `/${cgroup}`,
    // Since 1.35 a kubelet refuses to start on cgroup v1 otherwise.
    ...(isCgroupV1() ? { failCgroupV1: false } : {}),
    failSwapOn: false,
    // Lowering it takes CAP_SYS_RESOURCE.
    oomScoreAdj: 0,
    // A developer's disk is often fuller than a node's may be.
    evictionHard: {
      "memory.available": "100Mi",
      "nodefs.available": "1%",
      "imagefs.available": "1%",
    },
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    // One node at work for one person.
    serializeImagePulls: false,
    registryPullQPS: 0,
  };
}

function proxyConfig(dir: string, network: NodeNetwork) {
  return {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    // The only mode in which a NodePort answers on localhost, where containerd pulls from.
    mode: "iptables",
    clientConnection: { kubeconfig: layout(dir).kubeconfigOf("kube-proxy") },
    clusterCIDR: podCidr,
    hostnameOverride: nodeName,
    bindAddress: network.address,
    oomScoreAdj: 0,
    // They belong to the whole machine.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: "0s", tcpCloseWaitTimeout: "0s" },
  };
}
