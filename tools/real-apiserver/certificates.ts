/** The control plane's certificates, issued by openssl: short-lived, for one address, thrown away with the cluster. */
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";

const days = "30";

/**
 * Three authorities, as in any real cluster: those that the first one certifies may call the API, which must
 * neither open etcd nor let them speak for another user (front proxy).
 */
const authorities = ["ca", "etcd-ca", "front-proxy-ca"] as const;
type Authority = (typeof authorities)[number];

interface Leaf {
  authority: Authority;
  /** In openssl's notation. For clients of the API: CN is the user, O the group. */
  subject: string;
  usage: "serverAuth" | "clientAuth" | "serverAuth,clientAuth";
  names?: string;
}

const loopback = "DNS:localhost,IP:127.0.0.1,IP:::1";
const inCluster = ["", ".default", ".default.svc", ".default.svc.cluster.local"];

/** What there is to certify; `host` is where everything listens. */
const leavesOf = (host: string) => {
  const machine = host === "127.0.0.1" ? loopback : `${loopback},IP:${host}`;
  return {
    etcd: {
      authority: "etcd-ca",
      subject: "/CN=etcd",
      // etcd is also its own peer and its own client.
      usage: "serverAuth,clientAuth",
      names: machine,
    },
    "etcd-client": { authority: "etcd-ca", subject: "/CN=etcd-client", usage: "clientAuth" },
    apiserver: {
      authority: "ca",
      subject: "/CN=kube-apiserver",
      usage: "serverAuth",
      names: [machine, ...inCluster.map((end) => `DNS:kubernetes${end}`), "IP:10.96.0.1"].join(","),
    },
    serving: {
      authority: "ca",
      subject: "/CN=kube-components",
      usage: "serverAuth",
      names: machine,
    },
    admin: {
      authority: "ca",
      subject: "/O=system:masters/CN=kubernetes-admin",
      usage: "clientAuth",
    },
    "controller-manager": {
      authority: "ca",
      subject: "/CN=system:kube-controller-manager",
      usage: "clientAuth",
    },
    kubelet: {
      authority: "ca",
      // What the Node authorizer and NodeRestriction know a node by.
      subject: "/O=system:nodes/CN=system:node:node",
      usage: "clientAuth",
    },
    "kubelet-serving": {
      authority: "ca",
      subject: "/CN=node",
      usage: "serverAuth",
      names: machine,
    },
    "kubelet-client": {
      authority: "ca",
      subject: "/O=system:masters/CN=kube-apiserver-kubelet-client",
      usage: "clientAuth",
    },
    "kube-proxy": { authority: "ca", subject: "/CN=system:kube-proxy", usage: "clientAuth" },
    scheduler: { authority: "ca", subject: "/CN=system:kube-scheduler", usage: "clientAuth" },
    "front-proxy-client": {
      authority: "front-proxy-ca",
      subject: "/CN=front-proxy-client",
      usage: "clientAuth",
    },
  } as const satisfies Record<string, Leaf>;
};

export type CertificateName = keyof ReturnType<typeof leavesOf> | Authority;

/**
 * Fills the directory with `<name>.crt` and `<name>.key` of every authority and leaf, and with
 * `service-account.key` and `.pub`, with which ServiceAccount tokens are signed.
 */
export function issueCertificates(dir: string, host: string): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  // Without a file of its own openssl would add extensions from the host's.
  writeFileSync(path.join(dir, "openssl.cnf"), "[req]\ndistinguished_name = dn\n[dn]\n");
  for (const name of authorities) {
    issue(dir, name, `/CN=${name}`, [
      "basicConstraints=critical,CA:TRUE",
      "keyUsage=critical,keyCertSign,cRLSign",
      "subjectKeyIdentifier=hash",
    ]);
  }
  for (const [name, leaf] of Object.entries<Leaf>(leavesOf(host))) {
    const extensions = [
      "basicConstraints=critical,CA:FALSE",
      "keyUsage=critical,digitalSignature",
      `extendedKeyUsage=${leaf.usage}`,
      ...(leaf.names ? [`subjectAltName=${leaf.names}`] : []),
    ];
    issue(dir, name, leaf.subject, extensions, leaf.authority);
  }
  const key = path.join(dir, "service-account.key");
  openssl(dir, ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key]);
  openssl(dir, ["pkey", "-in", key, "-pubout", "-out", path.join(dir, "service-account.pub")]);
  chmodSync(key, 0o600);
}

function issue(
  dir: string,
  name: string,
  subject: string,
  extensions: string[],
  authority?: Authority,
): void {
  const key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
  const files = ["-keyout", `${name}.key`, "-out", `${name}.crt`];
  const additions = extensions.flatMap((extension) => ["-addext", extension]);
  const signer = authority ? ["-CA", `${authority}.crt`, "-CAkey", `${authority}.key`] : [];
  const request = ["req", "-x509", "-config", "openssl.cnf", "-subj", subject, "-days", days];
  openssl(dir, [...request, ...key, ...files, ...additions, ...signer]);
  chmodSync(path.join(dir, `${name}.key`), 0o600);
}

function openssl(dir: string, args: string[]): void {
  try {
    execFileSync("openssl", args, { cwd: dir, stdio: ["ignore", "ignore", "pipe"] });
  } catch (cause) {
    throw new Error(`issuing certificates: openssl ${args[0]} failed (OpenSSL 3 is needed)`, {
      cause,
    });
  }
}
