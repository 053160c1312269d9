/** The name that each certificate carries: of a client, who it is (common name) and which groups it is in (organisations). */
export const subjects = {
  apiServer: { commonName: "kube-apiserver", organisations: [] },
  webhook: { commonName: "serverless-webhook.kyma-system.svc", organisations: [] },
  admin: { commonName: "admin", organisations: ["system:masters"] },
  events: { commonName: "eventing-publisher-proxy.kyma-system.svc", organisations: [] },
  gateway: { commonName: "spry:gateway", organisations: ["spry:system"] },
  frontProxy: { commonName: "front-proxy-client", organisations: [] },
} satisfies Record<string, Subject>;

interface Subject {
  commonName: string;
  organisations: string[];
}

export type CertificateName = keyof typeof subjects;

/** Directory below the one of the certificates → which of them it has; each has an authority of its own, `ca`. */
export const certificateFolders: Record<string, CertificateName[]> = {
  ".": ["apiServer", "webhook", "admin", "events", "gateway"],
  // By it aggregated API servers know the API server, so no other certificate of the platform's may pass for it.
  "front-proxy": ["frontProxy"],
};
