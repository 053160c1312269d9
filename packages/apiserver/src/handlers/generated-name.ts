import { randomBytes } from "node:crypto";
import { StatusError, type UnknownObject } from "@spry/kube";
import { copyOf } from "../json-copy.ts";

/** As many as kube-apiserver tries. */
const maxAttempts = 8;
/** Letters that spell no words, as Kubernetes' names have them. */
const alphabet = "bcdfghjklmnpqrstvwxz2456789";
const suffixLength = 5;

/**
 * Creates an object, under a name of the server's choice when it has only a `generateName`; when that is
 * taken, under another. Throws the 409 of the last attempt.
 */
export async function withName(
  object: UnknownObject,
  create: (named: UnknownObject) => Promise<UnknownObject>,
): Promise<UnknownObject> {
  const { name, generateName } = object.metadata;
  if (name || !generateName) return create(object);
  for (let attempt = 1; ; attempt++) {
    const named = copyOf(object);
    named.metadata.name = generatedName(generateName);
    try {
      return await create(named);
    } catch (error) {
      const isTaken = error instanceof StatusError && error.reason === "AlreadyExists";
      if (!isTaken || attempt === maxAttempts) throw error;
    }
  }
}

function generatedName(base: string): string {
  const random = randomBytes(suffixLength);
  const suffix = Array.from(random, (byte) => alphabet[byte % alphabet.length]).join("");
  return base.slice(0, 63 - suffixLength) + suffix;
}
