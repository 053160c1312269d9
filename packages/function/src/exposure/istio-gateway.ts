import { type KubeObject, type Resource } from "@spry/kube/browser";

/** `networking.istio.io/v1 Gateway`, as far as it is served: which hosts have which certificate. */
export interface IstioGateway extends KubeObject {
  spec?: IstioGatewaySpec;
}

export interface IstioGatewaySpec {
  /** Which of Istio's proxies; of no meaning here. */
  selector?: Record<string, string>;
  servers?: GatewayServer[];
}

export interface GatewayServer {
  port?: { number?: number; name?: string; protocol?: string };
  /** `host`, `*.host`, `*`, each also with `namespace/`, `./` or `*` and a slash in front. */
  hosts?: string[];
  tls?: GatewayTls;
  name?: string;
}

export interface GatewayTls {
  mode?: string;
  /** A Secret with certificate and key. */
  credentialName?: string;
  httpsRedirect?: boolean;
}

export const istioGateways: Resource<IstioGateway> = {
  group: "networking.istio.io",
  version: "v1",
  kind: "Gateway",
  plural: "gateways",
  namespaced: true,
};
