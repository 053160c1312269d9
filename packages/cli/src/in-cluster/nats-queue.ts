import { type Logger } from "@spry/kube";
import { openJetStreamQueue, type Queue } from "@spry/queue";
import { UserError } from "../user-error.ts";

/** How the queue is opened that a program's environment names; undefined where events are off. */
export function natsQueue(env: NodeJS.ProcessEnv, log: Logger): (() => Promise<Queue>) | undefined {
  const servers = (env["NATS_SERVERS"] ?? "").split(",").filter(Boolean);
  if (servers.length === 0) return undefined;
  const replicas = Number(env["NATS_REPLICAS"]);
  if (!Number.isInteger(replicas) || replicas < 1)
    throw new UserError(
      `NATS_REPLICAS ${env["NATS_REPLICAS"]}: not a whole number from 1`,
      "the Deployment sets it",
    );
  const token = env["NATS_TOKEN"];
  const connection = token ? { connection: { token } } : {};
  return () => openJetStreamQueue({ servers, replicas, log, ...connection });
}
