import { constants, createPublicKey, type JsonWebKey, type KeyObject, verify } from "node:crypto";

/**
 * How each algorithm is verified (RFC 7518, section 3; RFC 8037). All are signatures by a private key: a public key can
 * never be used as a shared secret (RFC 8725, section 3.1).
 */
const methods = new Map<string, { hash: string | null; input: object }>([
  ["EdDSA", { hash: null, input: {} }],
]);
for (const bits of ["256", "384", "512"]) {
  const hash = `sha${bits}`;
  const pss = {
    padding: constants.RSA_PKCS1_PSS_PADDING,
    saltLength: constants.RSA_PSS_SALTLEN_DIGEST,
  };
  methods.set(`RS${bits}`, { hash, input: {} });
  methods.set(`PS${bits}`, { hash, input: pss });
  methods.set(`ES${bits}`, { hash, input: { dsaEncoding: "ieee-p1363" } });
}

export const isAlgorithm = (name: string): boolean => methods.has(name);

/** Whether verifying by this key takes less time than handing the work to another thread. */
function isQuick({ asymmetricKeyDetails: details }: KeyObject): boolean {
  const { namedCurve, modulusLength, publicExponent } = details ?? {};
  if (modulusLength === undefined) return namedCurve === "prime256v1";
  return modulusLength <= 4_096 && publicExponent === 65_537n;
}

/** A key with what is asked of it again and again. */
export interface PublicKey {
  readonly object: KeyObject;
  readonly isQuick: boolean;
}

/**
 * Whether a signature is this key's. What takes long (large keys, which tenants choose) is for other threads: it delays no
 * other request.
 */
export async function isSignature(
  algorithm: string,
  { object, isQuick: isNow }: PublicKey,
  signed: Buffer,
  signature: Buffer,
): Promise<boolean> {
  const method = methods.get(algorithm);
  if (!method) return false;
  const { hash, input } = method;
  const options = { key: object, ...input };
  try {
    if (isNow) return verify(hash, signed, options, signature);
    return await new Promise((resolve) => {
      verify(hash, signed, options, signature, (error, isGood) => resolve(!error && isGood));
    });
  } catch {
    // What is not a signature at all may be an error instead of a "no".
    return false;
  }
}

const shortestModulus = 2_048;
const longestModulus = 16_384;
/** A larger one would let each verification take many times as long. */
const largestExponent = 2n ** 32n;

/**
 * A public key as it is published (RFC 7517).
 * @throws if it is not a key, or too small to be safe (RFC 7518, section 3.3) or too large to be used
 */
export function publicKeyOf(jwk: JsonWebKey): PublicKey {
  const key = createPublicKey({ key: jwk, format: "jwk" });
  const { modulusLength: bits, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  if (publicExponent > largestExponent) throw new Error("an RSA key of a large exponent");
  if (bits !== undefined && (bits < shortestModulus || bits > longestModulus))
    throw new Error(`an RSA key of ${bits} bits`);
  return { object: key, isQuick: isQuick(key) };
}
