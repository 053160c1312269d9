import { fullHost } from "@spry/exposure";
import { type IstioGateway } from "@spry/function";

/** The URLs of an APIRule's hosts; on one machine at the gateway's own port for HTTPS, where it is known. */
export function hostUrls(
  hosts: readonly string[],
  gateway: IstioGateway,
  gatewayTls: URL | undefined,
): string[] {
  const port = gatewayTls?.protocol === "https:" && gatewayTls.port ? `:${gatewayTls.port}` : "";
  return hosts.flatMap((host) => {
    const name = fullHost(host, gateway);
    return name === undefined ? [] : [`https://${name}${port}/`];
  });
}
