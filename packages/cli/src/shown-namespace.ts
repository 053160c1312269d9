/** The namespace in commands that a message shows. */

let usual = "default";

/** The one that a command has without `-n`: the kubeconfig's. */
export function setUsualNamespace(namespace: string): void {
  usual = namespace;
}

/** ` -n NAME`; nothing for the usual one. */
export const inNamespace = (namespace: string): string =>
  namespace === usual ? "" : ` -n ${namespace}`;
