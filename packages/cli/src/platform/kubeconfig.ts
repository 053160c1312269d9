import { dump } from "js-yaml";
import { type KeyPair } from "./certificates.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

/**
 * A kubeconfig for the embedded API server. The gateway's URL travels along as an extension of the
 * cluster, so that `spry invoke` finds it wherever the file is used.
 */
export function kubeconfigFor(options: {
  server: string;
  ca: string;
  user: string;
  client: KeyPair;
  gateway?: string;
}): string {
  const cluster = {
    server: options.server,
    "certificate-authority-data": base64(options.ca),
    ...(options.gateway && {
      extensions: [{ name: gatewayExtension, extension: { url: options.gateway } }],
    }),
  };
  const user = {
    "client-certificate-data": base64(options.client.cert),
    "client-key-data": base64(options.client.key),
  };
  return dump({
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "spry", cluster }],
    users: [{ name: options.user, user }],
    contexts: [
      { name: "spry", context: { cluster: "spry", user: options.user, namespace: "default" } },
    ],
    "current-context": "spry",
  });
}

export const gatewayExtension = "spry.io/gateway";
