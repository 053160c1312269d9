import path from "node:path";
import { dump } from "js-yaml";
import { type KeyPair } from "./certificates.ts";
import { type DataDir } from "./data-dir.ts";

const base64 = (text: string) => Buffer.from(text).toString("base64");

/** The file with which the gateway's process reaches the API server. */
export const gatewayKubeconfig = ({ root }: DataDir): string =>
  path.join(root, "gateway.kubeconfig");

/**
 * A kubeconfig for the embedded API server. The URLs of gateway and registry travel along as extensions of
 * the cluster, so that `spry invoke` and `spry deploy` find them wherever the file is used.
 */
export function kubeconfigFor(options: {
  server: string;
  ca: string;
  user: string;
  client: KeyPair;
  gateway?: string;
  gatewayTls?: string;
  registry?: string;
  publisher?: string;
  events?: string;
}): string {
  const extensions = [
    { name: gatewayExtension, url: options.gateway },
    { name: gatewayTlsExtension, url: options.gatewayTls },
    { name: registryExtension, url: options.registry },
    { name: publisherExtension, url: options.publisher },
    { name: eventsExtension, url: options.events },
  ].flatMap(({ name, url }) => (url === undefined ? [] : [{ name, extension: { url } }]));
  const cluster = {
    server: options.server,
    "certificate-authority-data": base64(options.ca),
    ...(extensions.length > 0 && { extensions }),
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
/** The URL of its port for HTTPS. */
export const gatewayTlsExtension = "spry.io/gateway-tls";
/** Where events are published, and the administration of events. */
export const publisherExtension = "spry.io/publisher";
export const eventsExtension = "spry.io/events";
/** The URL at which this machine reaches the platform's registry. */
export const registryExtension = "spry.io/registry";
