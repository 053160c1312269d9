/**
 * Program: the registry in a cluster. Images are kept in `REGISTRY_DIR`, a volume of `REGISTRY_VOLUME_SIZE`;
 * everyone must log in.
 */
import path from "node:path";
import { tmpdir } from "node:os";
import { createRegistry, writeHtpasswd } from "@spry/image";
import { quantityValue } from "@spry/kube";
import { createLogger } from "../logger.ts";
import { UserError } from "../user-error.ts";
import { runProgram, untilAborted } from "./program.ts";

const log = createLogger({ name: "registry" });
const port = 5000;
/** Of the volume: what is on the way needs room too. */
const quotaShare = 0.9;

void runProgram(log, async (signal) => {
  const username = process.env["REGISTRY_USERNAME"];
  const password = process.env["REGISTRY_PASSWORD"];
  if (!username || !password) {
    throw new UserError("REGISTRY_USERNAME and REGISTRY_PASSWORD are not set", "a Secret has them");
  }
  const htpasswd = path.join(tmpdir(), "htpasswd");
  await writeHtpasswd(htpasswd, { username, password });
  const volume = process.env["REGISTRY_VOLUME_SIZE"];
  const registry = createRegistry({
    dir: process.env["REGISTRY_DIR"] ?? "/var/lib/registry",
    htpasswd,
    ...(volume ? { quotaBytes: Math.floor(quantityValue(volume) * quotaShare) } : {}),
    log,
  });
  const server = await registry.listen({ host: "0.0.0.0", port });
  log.info({ port: server.port }, "the registry listens");
  await untilAborted(signal);
  await server.close();
  await registry.close();
});
