import { type Secret } from "@spry/kube";

/** The registry of a namespace: where builders push to, and what nodes pull from. */
export interface RegistryAddresses {
  push: string;
  pull: string;
  /** Of the platform itself, which speaks HTTP without TLS (contract, section 6.1). */
  isInternal: boolean;
}

/** Reads them from the namespace's registry Secret; undefined if it names none. */
export function registryOf(secret: Secret | undefined): RegistryAddresses | undefined {
  const value = (key: string) => {
    const encoded = secret?.data?.[key];
    return encoded === undefined ? "" : Buffer.from(encoded, "base64").toString().trim();
  };
  const both = value("registryAddress");
  const push = value("pushRegAddr") || both;
  const pull = value("pullRegAddr") || both;
  const isInternal = value("isInternal") === "true";
  return push && pull ? { push, pull, isInternal } : undefined;
}

/** The name by which a builder reaches an image that nodes know by its pull address. */
export function pushNameOf(image: string, registry: RegistryAddresses): string {
  const prefix = `${registry.pull}/`;
  return image.startsWith(prefix) ? `${registry.push}/${image.slice(prefix.length)}` : image;
}
