import { type NatsSpec } from "./types.ts";

const name = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/;

/** What cannot be used of it: the field and a sentence, and no credential. */
export function natsProblem(nats: NatsSpec | undefined): string | undefined {
  if (!nats) return undefined;
  const { servers, secretName = "", replicas = 1 } = nats;
  if (!Array.isArray(servers) || servers.length === 0) return "servers: at least one is needed";
  for (const [i, server] of servers.entries()) {
    const why = serverProblem(server);
    if (why) return `servers[${i}]: ${why}`;
  }
  if (secretName !== "" && !name.test(secretName))
    return `secretName: ${JSON.stringify(secretName)} is not the name of a Secret`;
  if (![1, 3, 5].includes(replicas)) return `replicas: ${replicas} is not 1, 3 or 5`;
  return undefined;
}

function serverProblem(server: string): string | undefined {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (
    !url ||
    !["nats:", "tls:"].includes(url.protocol) ||
    url.hostname === "" ||
    /[\s,]/.test(server)
  )
    return "not a URL such as nats://host:4222 or tls://host:4222";
  if (url.username !== "" || url.password !== "")
    return "it has credentials: put them into a Secret, and name that with secretName";
  if (!["", "/"].includes(url.pathname) || url.search !== "" || url.hash !== "")
    return "it has more than a host and a port";
  return undefined;
}
