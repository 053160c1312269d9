/** The real API server's arguments for the stricter defaults that the embedded one has. */
import { writeFileSync } from "node:fs";
import path from "node:path";

const level = "baseline";
const configuration = {
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AdmissionConfiguration",
  plugins: [
    {
      name: "PodSecurity",
      configuration: {
        apiVersion: "pod-security.admission.config.k8s.io/v1",
        kind: "PodSecurityConfiguration",
        defaults: { enforce: level, audit: level, warn: level },
        exemptions: { namespaces: ["kube-system", "kyma-system"] },
      },
    },
  ],
};

/** Writes the configuration into an existing directory that outlives the server. */
export function stricterArguments(directory: string): string[] {
  const file = path.join(directory, "admission.json");
  writeFileSync(file, JSON.stringify(configuration));
  return [
    `--admission-control-config-file=${file}`,
    "--service-account-max-token-expiration=8760h",
  ];
}
