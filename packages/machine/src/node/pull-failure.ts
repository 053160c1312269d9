/**
 * What a Pod's status and Events say about a failed pull from a registry that the Pod's author has named. The author may be unable to
 * reach it, or to read what it answers: nothing that it has sent is shown, and of an address that is refused not even whether
 * something listens there.
 */
import { ImageError, type ImageName, RegistryError } from "@spry/image";
import { AddressRefusedError } from "@spry/kube";

/** The codes of the distribution specification 1.1, "Error Codes". Any other text is the registry's own. */
const codes = new Set([
  "BLOB_UNKNOWN",
  "BLOB_UPLOAD_INVALID",
  "BLOB_UPLOAD_UNKNOWN",
  "DIGEST_INVALID",
  "MANIFEST_BLOB_UNKNOWN",
  "MANIFEST_INVALID",
  "MANIFEST_UNKNOWN",
  "NAME_INVALID",
  "NAME_UNKNOWN",
  "SIZE_INVALID",
  "UNAUTHORIZED",
  "DENIED",
  "UNSUPPORTED",
  "TOOMANYREQUESTS",
]);

/** What clients can do something about; of all others the class is shown. */
const plainStatuses = new Set([401, 403, 404, 429, 500, 502, 503, 504]);

const networkProblems: Record<string, string> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "the connection was closed",
  EPIPE: "the connection was closed",
  ENOTFOUND: "no such host",
  EAI_AGAIN: "its name could not be resolved",
  EHOSTUNREACH: "no route to host",
  ENETUNREACH: "network is unreachable",
  ETIMEDOUT: "no response in time",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is not trusted",
  SELF_SIGNED_CERT_IN_CHAIN: "its certificate is not trusted",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "its certificate is not trusted",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate is not trusted",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
};

/** The failure in words that may be shown to everyone who sees the Pod. */
export function pullFailure({ host, repository }: ImageName, error: unknown): Error {
  const of = `${host}/${repository}`;
  if (error instanceof AddressRefusedError)
    return new Error(
      `${host} leads to an address that no image is pulled from: loopback, this machine's own, a Pod's of another namespace, link-local or reserved; ` +
        `the operator can allow a registry on this machine by spry up --allow-loopback HOST:PORT`,
    );
  // Its message has the names that this program knew, and no answer.
  if (error instanceof ImageError)
    return new Error(error.message.includes(of) ? error.message : `${of}: ${error.message}`);
  if (error instanceof RegistryError) return new Error(`${of}: ${answerOf(host, error)}`);
  const limit = exceededLimit(error);
  if (limit !== undefined) return new Error(`${of}: ${limit}`);
  const { code } = (error ?? {}) as { code?: string };
  // A system call's message may hold the name of a file of the image.
  if (typeof code === "string" && /^E[A-Z]{2,14}$/.test(code))
    return new Error(`${of}: storing the image failed: ${code}`);
  return new Error(`${of}: what the registry has sent is not a valid image, or is incomplete`);
}

/** The limits of what is unpacked, in the words of `unpackLayer` and of what unpacks images: numbers alone. */
const limits =
  /^(?:more than \d+ (?:bytes(?: of names)?|entries)|the image has \d+ layers, more than the \d+ taken)$/;

function exceededLimit(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    if (!limits.test(at.message)) continue;
    return at.message.startsWith("more") ? `the image has ${at.message}` : at.message;
  }
  return undefined;
}

function answerOf(host: string, { status, code, host: asked, cause }: RegistryError): string {
  const own = host === "docker.io" ? "registry-1.docker.io" : host;
  // A storage or authorization service is the registry's choice: a closed port of it is not the author's to find.
  const isOwn = asked === "" || asked === own.toLowerCase() || asked === defaultPortless(own);
  const what = isOwn ? "the registry" : "a server to which the registry leads";
  if (status === 0) {
    const why = isOwn ? networkProblems[(cause as { code?: string } | undefined)?.code ?? ""] : "";
    return `${what} could not be reached${why ? `: ${why}` : ""}`;
  }
  const shown = plainStatuses.has(status) ? String(status) : `${Math.floor(status / 100)}xx`;
  const known = codes.has(code) ? ` ${code}` : "";
  return `${what} answered ${shown}${known}`;
}

const defaultPortless = (host: string) => host.toLowerCase().replace(/:(?:80|443)$/, "");
