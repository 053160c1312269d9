import { readFileSync, writeFileSync } from "node:fs";
import { type CertificateName } from "./certificates.ts";
import { layout } from "./components.ts";

/** Writes a kubeconfig that holds all it needs, readable by its owner only. */
export function writeKubeconfig(
  file: string,
  dir: string,
  server: string,
  user: CertificateName,
): void {
  const { certificate, key } = layout(dir);
  const base64 = (pem: string) => readFileSync(pem).toString("base64");
  const text = `apiVersion: v1
kind: Config
current-context: real-apiserver
contexts:
  - name: real-apiserver
    context: { cluster: real-apiserver, user: ${user} }
clusters:
  - name: real-apiserver
    cluster:
      server: ${server}
      certificate-authority-data: ${base64(certificate("ca"))}
users:
  - name: ${user}
    user:
      client-certificate-data: ${base64(certificate(user))}
      client-key-data: ${base64(key(user))}
`;
  writeFileSync(file, text, { mode: 0o600 });
}
