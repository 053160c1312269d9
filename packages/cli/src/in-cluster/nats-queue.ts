import { type Logger } from "@spry/kube";
import { openJetStreamQueue, type Queue } from "@spry/queue";
import { UserError } from "../user-error.ts";

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
  const ca = env["NATS_EXTERNAL_AUTHORITY"];
  const isEncrypted =
    isExternal && (Boolean(ca) || servers.some((each) => each.startsWith("tls:")));
  const connection = {
    ...(token ? { token } : {}),
    ...(user && pass ? { user, pass } : {}),
    ...(isEncrypted ? { tls: ca ? { ca } : {} } : {}),
  };
  return () => openJetStreamQueue({ servers, replicas, log, connection });
}
