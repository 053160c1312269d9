/** `iss` of ServiceAccount tokens and their default audience, as kubeadm sets them up. */
export const issuer = "https://kubernetes.default.svc.cluster.local";
