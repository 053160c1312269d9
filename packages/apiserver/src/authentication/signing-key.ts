import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
} from "node:crypto";
import {
  chmodSync,
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import path from "node:path";

/** What ServiceAccount tokens are signed with: ECDSA on P-256, `ES256`. */
export interface SigningKey {
  /** `kid`: the digest of the public key, as kube-apiserver makes it. */
  id: string;
  privateKey: KeyObject;
  publicKey: KeyObject;
}

export const keyFile = "service-account.key";

/** For the operator to deal with: a new key in its place would invalidate every token that is out. */
export class DamagedKeyError extends Error {
  override readonly name = "DamagedKeyError";

  constructor(file: string) {
    super(`${file} holds no private key for ServiceAccount tokens (EC, P-256, PEM)`);
  }
}

/**
 * The key of the data directory, made at the first start; a new one each time for ":memory:". Throws a `DamagedKeyError`
 * when there is a file that holds no such key.
 */
export function openSigningKey(dataDir: string): SigningKey {
  if (dataDir === ":memory:") return signingKey(generated());
  const file = path.join(dataDir, keyFile);
  const text = readIfThere(file);
  if (text === undefined) {
    const pem = generated();
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeDurably(file, pem);
    return signingKey(pem);
  }
  chmodSync(file, 0o600);
  try {
    return signingKey(text);
  } catch {
    throw new DamagedKeyError(file);
  }
}

function generated(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

function signingKey(pem: string): SigningKey {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyDetails?.namedCurve !== "prime256v1") throw new Error("no P-256 key");
  const publicKey = createPublicKey(privateKey);
  const der = publicKey.export({ type: "spki", format: "der" });
  const id = createHash("sha256").update(der).digest("base64url");
  return { id, privateKey, publicKey };
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Whole or not at all: a power cut must not leave half a key. */
function writeDurably(file: string, text: string): void {
  const partial = `${file}.${process.pid}`;
  const descriptor = openSync(partial, "wx", 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(partial, file);
}
