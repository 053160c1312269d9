/** The Gateway that the original's users name in their APIRules, for hosts of this machine. */
import { type IstioGateway, istioGateways } from "@spry/function";
import { isAlreadyExists, type KubeClient } from "@spry/kube";
import { systemNamespace } from "./system-objects.ts";

const hosts = ["*.localhost"];

/** `kyma-system/kyma-gateway`, as Kyma has it: created where it is missing; what a user makes of it stays. */
export async function ensureDefaultGateway(client: KubeClient): Promise<void> {
  const gateway: IstioGateway = {
    metadata: { name: "kyma-gateway", namespace: systemNamespace },
    spec: {
      selector: { app: "istio-ingressgateway", istio: "ingressgateway" },
      servers: [
        // Without a credentialName: the certificate is the platform's own.
        { port: { number: 443, name: "https", protocol: "HTTPS" }, hosts, tls: { mode: "SIMPLE" } },
        {
          port: { number: 80, name: "http", protocol: "HTTP" },
          hosts,
          tls: { httpsRedirect: true },
        },
      ],
    },
  };
  await client.create(istioGateways, gateway).catch((error: unknown) => {
    if (!isAlreadyExists(error)) throw error;
  });
}
