/** How each program is started: the defaults of a real cluster, except where the comment says why not. */
import path from "node:path";
import { type Program } from "./binaries.ts";
import { type CertificateName } from "./certificates.ts";

export interface Ports {
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

/** A cluster's directory: `pki/`, `etcd/`, kubeconfigs and logs. */
export const layout = (dir: string) => ({
  pki: path.join(dir, "pki"),
  certificate: (name: CertificateName) => path.join(dir, "pki", `${name}.crt`),
  key: (name: CertificateName) => path.join(dir, "pki", `${name}.key`),
  kubeconfig: path.join(dir, "kubeconfig"),
  kubeconfigOf: (user: "controller-manager" | "scheduler") => path.join(dir, `${user}.kubeconfig`),
  log: (program: Program) => path.join(dir, `${program}.log`),
  record: path.join(dir, "cluster.json"),
});

export function etcd(dir: string, ports: Ports): Component {
  const { certificate, key } = layout(dir);
  const client = `https://127.0.0.1:${ports.etcd}`;
  const peer = `https://127.0.0.1:${ports.etcdPeer}`;
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

export function apiServer(dir: string, ports: Ports): Component {
  const { certificate, key, pki } = layout(dir);
  const serviceAccount = path.join(pki, "service-account");
  return {
    program: "kube-apiserver",
    args: [
      "--bind-address=127.0.0.1",
      `--secure-port=${ports.apiServer}`,
      // The endpoint of the Service `kubernetes` must not be a loopback address. Nothing ever calls this
      // one (RFC 5737), so that the cluster starts on a machine without a network too.
      "--advertise-address=192.0.2.1",
      `--etcd-servers=https://127.0.0.1:${ports.etcd}`,
      `--etcd-cafile=${certificate("etcd-ca")}`,
      `--etcd-certfile=${certificate("etcd-client")}`,
      `--etcd-keyfile=${key("etcd-client")}`,
      `--tls-cert-file=${certificate("apiserver")}`,
      `--tls-private-key-file=${key("apiserver")}`,
      `--client-ca-file=${certificate("ca")}`,
      "--authorization-mode=Node,RBAC",
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
    ],
    ready: {
      url: `https://127.0.0.1:${ports.apiServer}/readyz`,
      authority: "ca",
      client: "admin",
    },
  };
}

export function controllerManager(dir: string, ports: Ports): Component {
  const { certificate, key, kubeconfigOf, pki } = layout(dir);
  return {
    program: "kube-controller-manager",
    args: [
      ...clientArgs(dir, kubeconfigOf("controller-manager"), ports.controllerManager),
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
      url: `https://127.0.0.1:${ports.controllerManager}/healthz`,
      authority: "ca",
      client: "admin",
    },
  };
}

export function scheduler(dir: string, ports: Ports): Component {
  return {
    program: "kube-scheduler",
    args: clientArgs(dir, layout(dir).kubeconfigOf("scheduler"), ports.scheduler),
    ready: {
      url: `https://127.0.0.1:${ports.scheduler}/readyz`,
      authority: "ca",
      client: "admin",
    },
  };
}

/** There is one of each, so electing a leader would only cost seconds at the start and a write every two. */
function clientArgs(dir: string, kubeconfig: string, port: number): string[] {
  const { certificate, key } = layout(dir);
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    "--bind-address=127.0.0.1",
    `--secure-port=${port}`,
    `--tls-cert-file=${certificate("serving")}`,
    `--tls-private-key-file=${key("serving")}`,
    "--leader-elect=false",
    "--profiling=false",
  ];
}
