/** The name that each certificate carries: of a client, who it is (common name) and which groups it is in (organisations). */
export const subjects = {
  apiServer: { commonName: "kube-apiserver", organisations: [] },
  webhook: { commonName: "serverless-webhook.kyma-system.svc", organisations: [] },
  admin: { commonName: "admin", organisations: ["system:masters"] },
  events: { commonName: "eventing-publisher-proxy.kyma-system.svc", organisations: [] },
  gateway: { commonName: "spry:gateway", organisations: ["spry:system"] },
} satisfies Record<string, Subject>;

interface Subject {
  commonName: string;
  organisations: string[];
}

export type CertificateName = keyof typeof subjects;

export const certificateNames = Object.keys(subjects) as CertificateName[];
