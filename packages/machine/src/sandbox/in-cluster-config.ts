import { writeFile } from "node:fs/promises";
import path from "node:path";
import { type Mount } from "./sandbox.ts";

const accountPath = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Programs in a Pod look for their token at a path of the container's root, which plain processes do not
 * have. Clients ask `KUBECONFIG` before that: this writes a file to name there, which refers to the mounted
 * token and so sees it rotate. Undefined when the container has no token, or nowhere to use it. Nothing of the volume is
 * read: the Pod may have put links there, which would be followed with the rights of the platform.
 */
export async function inClusterConfig(
  dir: string,
  mounts: readonly Mount[],
  env: Readonly<Record<string, string>>,
  namespace: string,
): Promise<string | undefined> {
  const source = mounts.find(({ mountPath }) => mountPath === accountPath)?.source;
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!source || !host || env["KUBECONFIG"]) return undefined;
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  const name = "in-cluster";
  const cluster = { server, "certificate-authority": path.join(source, "ca.crt") };
  const tokenFile = path.join(source, "token");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": name,
    clusters: [{ name, cluster }],
    // The second is how the JavaScript client spells it.
    users: [{ name, user: { tokenFile, "token-file": tokenFile } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace } }],
  };
  const file = path.join(dir, "kubeconfig");
  await writeFile(file, JSON.stringify(config), { mode: 0o600 });
  return file;
}
