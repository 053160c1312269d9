/** How each program is started: the defaults of a real cluster, except where the comment says why not. */
import path from "node:path";
import { type Program } from "./binaries.ts";
import { type CertificateName } from "./certificates.ts";

/** Where the programs listen. */
export interface Addresses {
  /** 127.0.0.1, or the node's address when there is one. */
  host: string;
  etcd: number;
  etcdPeer: number;
  apiServer: number;
  controllerManager: number;
  scheduler: number;
}

export interface Component {
  program: Program;
  args: string[];
  /** Answers 200 once the program does its work. */
  ready: { url: string; authority: CertificateName; client: CertificateName };
}

/** Programs that call the API with a kubeconfig of their own. */
export type ClusterUser = "controller-manager" | "scheduler" | "kubelet" | "kube-proxy";

/** A cluster's directory: `pki/`, `etcd/`, kubeconfigs and logs. */
export const layout = (dir: string) => ({
  pki: path.join(dir, "pki"),
  certificate: (name: CertificateName) => path.join(dir, "pki", `${name}.crt`),
  key: (name: CertificateName) => path.join(dir, "pki", `${name}.key`),
  kubeconfig: path.join(dir, "kubeconfig"),
  kubeconfigOf: (user: ClusterUser) => path.join(dir, `${user}.kubeconfig`),
  log: (program: string) => path.join(dir, `${program}.log`),
  record: path.join(dir, "cluster.json"),
  auditPolicy: path.join(dir, "audit-policy.json"),
  auditLog: path.join(dir, "audit.log"),
});

export function etcd(dir: string, at: Addresses): Component {
  const { certificate, key } = layout(dir);
  const client = `https://${at.host}:${at.etcd}`;
  const peer = `https://${at.host}:${at.etcdPeer}`;
  const tls = (prefix: string) => [
    `--${prefix}cert-file=${certificate("etcd")}`,
    `--${prefix}key-file=${key("etcd")}`,
    `--${prefix}trusted-ca-file=${certificate("etcd-ca")}`,
    `--${prefix}client-cert-auth=true`,
  ];
  return {
    program: "etcd",
    args: [
      "--name=etcd",
      `--data-dir=${path.join(dir, "etcd")}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=etcd=${peer}`,
      ...tls(""),
      ...tls("peer-"),
      "--log-level=warn",
    ],
    ready: { url: `${client}/readyz`, authority: "etcd-ca", client: "etcd-client" },
  };
}

/** With the admission plugins that are on by default and `more`, and further arguments. */
export function apiServer(
  dir: string,
  at: Addresses,
  more: readonly string[] = [],
  furtherArgs: readonly string[] = [],
): Component {
  const { certificate, key, pki } = layout(dir);
  const serviceAccount = path.join(pki, "service-account");
  const plugins = [...(isLoopback(at) ? [] : ["NodeRestriction"]), ...more];
  return {
    program: "kube-apiserver",
    args: [
      `--bind-address=${at.host}`,
      `--secure-port=${at.apiServer}`,
      // The endpoint of the Service `kubernetes` must not be a loopback address. Without a node nothing
      // ever calls it, so that the cluster starts on a machine without a network too (RFC 5737).
      `--advertise-address=${isLoopback(at) ? "192.0.2.1" : at.host}`,
      ...(isLoopback(at) ? [] : kubeletArgs(dir)),
      `--etcd-servers=https://${at.host}:${at.etcd}`,
      `--etcd-cafile=${certificate("etcd-ca")}`,
      `--etcd-certfile=${certificate("etcd-client")}`,
      `--etcd-keyfile=${key("etcd-client")}`,
      `--tls-cert-file=${certificate("apiserver")}`,
      `--tls-private-key-file=${key("apiserver")}`,
      `--client-ca-file=${certificate("ca")}`,
      "--authorization-mode=Node,RBAC",
      ...(plugins.length > 0 ? [`--enable-admission-plugins=${plugins.join()}`] : []),
      "--allow-privileged=true",
      "--service-cluster-ip-range=10.96.0.0/16",
      "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
      `--service-account-key-file=${serviceAccount}.pub`,
      `--service-account-signing-key-file=${serviceAccount}.key`,
      // Aggregated APIs (metrics.k8s.io): a Service of type ExternalName `localhost` reaches one on this machine.
      `--requestheader-client-ca-file=${certificate("front-proxy-ca")}`,
      "--requestheader-allowed-names=front-proxy-client",
      "--requestheader-username-headers=X-Remote-User",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      `--proxy-client-cert-file=${certificate("front-proxy-client")}`,
      `--proxy-client-key-file=${key("front-proxy-client")}`,
      "--profiling=false",
      ...furtherArgs,
    ],
    ready: {
      url: `https://${at.host}:${at.apiServer}/readyz`,
      authority: "ca",
      client: "admin",
    },
  };
}

const isLoopback = ({ host }: Addresses): boolean => host === "127.0.0.1";

/** How the API server reaches kubelets (logs, exec), and keeps each to its own node's objects. */
function kubeletArgs(dir: string): string[] {
  const { certificate, key } = layout(dir);
  return [
    `--kubelet-client-certificate=${certificate("kubelet-client")}`,
    `--kubelet-client-key=${key("kubelet-client")}`,
    `--kubelet-certificate-authority=${certificate("ca")}`,
    "--kubelet-preferred-address-types=InternalIP",
    // What programs in Pods ask for, so that a test can hold their roles against it.
    `--audit-policy-file=${layout(dir).auditPolicy}`,
    `--audit-log-path=${layout(dir).auditLog}`,
  ];
}

/** Of every request by a ServiceAccount that is not the cluster's own: who asked for what, and the answer's status. */
export const auditPolicy = JSON.stringify({
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  // A watch is told of when it begins: its end may be long after the test's.
  omitStages: ["RequestReceived"],
  rules: [
    { level: "None", userGroups: ["system:serviceaccounts:kube-system"] },
    { level: "Metadata", userGroups: ["system:serviceaccounts"] },
    { level: "None" },
  ],
});

export function controllerManager(dir: string, at: Addresses): Component {
  const { certificate, key, kubeconfigOf, pki } = layout(dir);
  return {
    program: "kube-controller-manager",
    args: [
      ...clientArgs(dir, kubeconfigOf("controller-manager"), at.host, at.controllerManager),
      "--controllers=*",
      // The default is a directory below /usr that it creates at its start.
      `--flex-volume-plugin-dir=${path.join(dir, "flexvolume")}`,
      "--use-service-account-credentials=true",
      // A token for each of forty controllers takes four seconds at the default of 20 requests a second.
      "--kube-api-qps=200",
      "--kube-api-burst=400",
      `--service-account-private-key-file=${path.join(pki, "service-account.key")}`,
      `--root-ca-file=${certificate("ca")}`,
      `--cluster-signing-cert-file=${certificate("ca")}`,
      `--cluster-signing-key-file=${key("ca")}`,
    ],
    ready: {
      url: `https://${at.host}:${at.controllerManager}/healthz`,
      authority: "ca",
      client: "admin",
    },
  };
}

export function scheduler(dir: string, at: Addresses): Component {
  return {
    program: "kube-scheduler",
    args: clientArgs(dir, layout(dir).kubeconfigOf("scheduler"), at.host, at.scheduler),
    ready: {
      url: `https://${at.host}:${at.scheduler}/readyz`,
      authority: "ca",
      client: "admin",
    },
  };
}

/** There is one of each, so electing a leader would only cost seconds at the start and a write every two. */
function clientArgs(dir: string, kubeconfig: string, host: string, port: number): string[] {
  const { certificate, key } = layout(dir);
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    `--bind-address=${host}`,
    `--secure-port=${port}`,
    `--tls-cert-file=${certificate("serving")}`,
    `--tls-private-key-file=${key("serving")}`,
    "--leader-elect=false",
    "--profiling=false",
  ];
}
