import { type Logger } from "@spry/kube";
import { openJetStreamQueue, type Queue, QueueUnavailableError } from "@spry/queue";
import { UserError } from "../user-error.ts";
import { isForTls, plainProblem, plainServer } from "./nats-plaintext.ts";

/**
 * How the queue is opened that a program's environment names; undefined where events are off. Servers of the Serverless object
 * (`NATS_EXTERNAL_…`) come before those of the installation.
 */
export function natsQueue(env: NodeJS.ProcessEnv, log: Logger): (() => Promise<Queue>) | undefined {
  return queueOf(env, log, Boolean(env["NATS_EXTERNAL_SERVERS"]));
}

/** That of the installation where servers of the Serverless object are used: events may wait there still. */
export function formerNatsQueue(env: NodeJS.ProcessEnv, log: Logger) {
  return env["NATS_EXTERNAL_SERVERS"] ? queueOf(env, log, false) : undefined;
}

function queueOf(
  env: NodeJS.ProcessEnv,
  log: Logger,
  isExternal: boolean,
): (() => Promise<Queue>) | undefined {
  const own = (name: string) => env[isExternal ? `NATS_EXTERNAL_${name}` : `NATS_${name}`];
  const servers = (own("SERVERS") ?? "").split(",").filter(Boolean);
  if (servers.length === 0) return undefined;
  const replicas = Number(own("REPLICAS"));
  if (!Number.isInteger(replicas) || replicas < 1)
    throw new UserError(
      `the number of replicas ${own("REPLICAS")} of NATS servers is not a whole number from 1`,
      "the Deployment sets it",
    );
  const [token, user, pass] = [own("TOKEN"), own("USERNAME"), own("PASSWORD")];
  const ca = isExternal ? env["NATS_EXTERNAL_AUTHORITY"] : undefined;
  const isEncrypted = isForTls(servers, ca);
  const connection = {
    ...(token ? { token } : {}),
    ...(user && pass ? { user, pass } : {}),
    ...(isEncrypted ? { tls: ca ? { ca } : {} } : {}),
  };
  const hasCredentials = Boolean(token) || Boolean(user && pass);
  const plain =
    hasCredentials && own("PLAINTEXT") !== "true" ? plainServer(servers, ca) : undefined;
  // Here, and not at the start: the program does the rest of its work, and logs this.
  return async () => {
    if (plain !== undefined)
      throw new QueueUnavailableError(`the NATS server ${plainProblem(plain)}`);
    return openJetStreamQueue({ servers, replicas, log, connection });
  };
}
