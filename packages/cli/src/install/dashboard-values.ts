/** What an operator may say about the dashboard of an installation. Programs of the cluster import it: it must not need a checkout. */
import { isSafeUrl } from "../in-cluster/safe-url.ts";

export interface DashboardValues {
  /** Whether it is installed. Without it, `spry dashboard` serves it on the user's machine. */
  enabled: boolean;
  replicas: number;
  /** How browsers reach it (`https://spry.example.com`). Empty: by `kubectl port-forward` only. */
  url: string;
  /** A login at an OpenID Connect provider that the API server trusts; without an issuer, users log in with tokens. */
  oidc: {
    issuer: string;
    clientId: string;
    /** A Secret in the namespace with the key `clientSecret`; empty for a public client. */
    secretName: string;
    /** Besides `openid`; separated by spaces. */
    scopes: string;
    /** PEM, of a provider whose certificate is not publicly trusted. */
    certificateAuthority: string;
  };
}

export const defaultDashboardValues: DashboardValues = {
  enabled: false,
  replicas: 1,
  url: "",
  oidc: { issuer: "", clientId: "", secretName: "", scopes: "email", certificateAuthority: "" },
};

/** Why the dashboard could not start with these values, and the way out. */
export function dashboardProblem({
  url,
  oidc,
}: DashboardValues): [problem: string, wayOut: string] | undefined {
  const urls = { "dashboard.url": url, "dashboard.oidc.issuer": oidc.issuer };
  for (const [field, text] of Object.entries(urls)) {
    const parsed = URL.parse(text);
    if (text !== "" && !(parsed && isSafeUrl(parsed)))
      return [`${field} ${text} is not a URL with https`, "http is for loopback addresses only"];
  }
  if (oidc.issuer === "") return undefined;
  const missing = url === "" ? "url" : oidc.clientId === "" ? "oidc.clientId" : undefined;
  return missing === undefined
    ? undefined
    : [`dashboard.oidc.issuer is set, and dashboard.${missing} is not`, "logins need both"];
}
