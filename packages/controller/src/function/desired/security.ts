import { type Container, type PodSpec } from "@spry/kube";

type PodSecurityContext = NonNullable<PodSpec["securityContext"]>;
type ContainerSecurityContext = NonNullable<Container["securityContext"]>;

const user = 1000;

/** Fits the Pod Security level "restricted", for Functions and builds alike. */
export const podSecurityContext: PodSecurityContext = {
  runAsUser: user,
  runAsGroup: user,
  fsGroup: user,
  runAsNonRoot: true,
  seccompProfile: { type: "RuntimeDefault" },
};

export const containerSecurityContext: ContainerSecurityContext = {
  privileged: false,
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
};
