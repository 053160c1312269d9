/** The settings of the dashboard in a cluster, from the environment of its Pod. */
import { readFileSync } from "node:fs";
import { type OidcOptions } from "@spry/dashboard";
import { UserError } from "../user-error.ts";
import { textIn } from "./environment.ts";
import { isSafeUrl } from "./safe-url.ts";

export interface DashboardEnvironment {
  apiServer: { server: string; certificateAuthority: string };
  /** Where browsers reach it, besides loopback addresses (`kubectl port-forward`). */
  url: URL | undefined;
  oidc: OidcOptions | undefined;
  /** The host whose addresses are the gateways'. */
  gatewayPods: string | undefined;
  /** Where the registry reports what it stores. */
  registryUsage: string | undefined;
}

/** Where the Deployment mounts the ConfigMap `kube-root-ca.crt`, which every namespace has. */
export const apiServerAuthority = "/etc/spry/api-server/ca.crt";

/** Throws a `UserError` that names the variable which is missing or wrong. */
export function dashboardEnvironment(
  env: NodeJS.ProcessEnv,
  read: (file: string) => string = (file) => readFileSync(file, "utf8"),
): DashboardEnvironment {
  const host = textIn(env, "KUBERNETES_SERVICE_HOST", "Kubernetes sets it in every Pod");
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "443";
  const url = urlIn(env, "SPRY_DASHBOARD_URL");
  return {
    apiServer: {
      server: `https://${host.includes(":") ? `[${host}]` : host}:${port}`,
      certificateAuthority: read(env["SPRY_API_SERVER_CA_FILE"] || apiServerAuthority),
    },
    url,
    oidc: oidcIn(env, url),
    gatewayPods: env["SPRY_GATEWAY_PODS"] || undefined,
    registryUsage: env["SPRY_REGISTRY_USAGE"] || undefined,
  };
}

function oidcIn(env: NodeJS.ProcessEnv, url: URL | undefined): OidcOptions | undefined {
  if (!env["SPRY_OIDC_ISSUER"]) return undefined;
  // Compared letter by letter with what tokens say: not the URL in its normal form.
  const issuer = textIn(env, "SPRY_OIDC_ISSUER");
  urlIn(env, "SPRY_OIDC_ISSUER");
  if (!url)
    throw new UserError(
      "SPRY_DASHBOARD_URL is not set: the identity provider sends browsers back to it",
      "set dashboard.url in the values",
    );
  return {
    issuer,
    url,
    clientId: textIn(env, "SPRY_OIDC_CLIENT_ID", "set dashboard.oidc.clientId in the values"),
    clientSecret: env["SPRY_OIDC_CLIENT_SECRET"] || undefined,
    scopes: (env["SPRY_OIDC_SCOPES"] ?? "").split(/[\s,]+/).filter(Boolean),
    certificateAuthority: env["SPRY_OIDC_CA"] || undefined,
  };
}

function urlIn(env: NodeJS.ProcessEnv, name: string): URL | undefined {
  const text = env[name];
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url && isSafeUrl(url)) return url;
  throw new UserError(
    `${name} is not a URL with https: ${text}`,
    "http is for loopback addresses only",
  );
}
