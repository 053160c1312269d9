interface NetworkError extends Error {
  code?: string;
  address?: string;
  port?: number;
  hostname?: string;
  host?: string;
  reason?: string;
  errors?: Error[];
}

const certificateProblems: Record<string, string> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: "certificate signed by unknown authority",
  SELF_SIGNED_CERT_IN_CHAIN: "certificate signed by unknown authority",
  UNABLE_TO_GET_ISSUER_CERT: "certificate signed by unknown authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "certificate signed by unknown authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "certificate signed by unknown authority",
  INVALID_PURPOSE: "certificate specifies an incompatible key usage",
  CERT_HAS_EXPIRED: "certificate has expired or is not yet valid",
  CERT_NOT_YET_VALID: "certificate has expired or is not yet valid",
};

/** What went wrong on the way to a server, as Go's net/http words it. */
export function goNetworkError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code = "", address, port, hostname, errors } = error as NetworkError;
  // One attempt for each address of a name.
  const [first] = errors ?? [];
  if (first) return goNetworkError(first);
  const place = address?.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  if (code === "ECONNREFUSED") return `dial tcp ${place}: connect: connection refused`;
  if (code === "EHOSTUNREACH") return `dial tcp ${place}: connect: no route to host`;
  if (code === "ENETUNREACH") return `dial tcp ${place}: connect: network is unreachable`;
  if (code === "ENOTFOUND") return `dial tcp: lookup ${hostname}: no such host`;
  if (code === "ECONNRESET") return "EOF";
  if (certificateProblems[code]) {
    return `tls: failed to verify certificate: x509: ${certificateProblems[code]}`;
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return altNameProblem(error);
  return error.message;
}

function altNameProblem({ host, message }: NetworkError): string {
  const names = [...message.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].map(([, name]) => name);
  const valid =
    names.length > 0 ? `certificate is valid for ${names.join(", ")}, not ${host}` : message;
  return `tls: failed to verify certificate: x509: ${valid}`;
}
