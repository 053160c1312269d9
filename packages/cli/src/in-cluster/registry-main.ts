/** Program: the registry in a cluster. Images are kept in `REGISTRY_DIR`; everyone must log in. */
import { createRegistry } from "@spry/image";
import { createLogger } from "../logger.ts";
import { UserError } from "../user-error.ts";
import { runProgram, untilAborted } from "./program.ts";

const log = createLogger({ name: "registry" });
const port = 5000;
const collectEveryMs = 24 * 3600 * 1000;

void runProgram(log, async (signal) => {
  const username = process.env["REGISTRY_USERNAME"];
  const password = process.env["REGISTRY_PASSWORD"];
  if (!username || !password) {
    throw new UserError("REGISTRY_USERNAME and REGISTRY_PASSWORD are not set", "a Secret has them");
  }
  const registry = createRegistry({
    dir: process.env["REGISTRY_DIR"] ?? "/var/lib/registry",
    credentials: { username, password },
    log,
  });
  const server = await registry.listen({ host: "0.0.0.0", port });
  log.info({ port: server.port }, "the registry listens");
  const collecting = setInterval(() => {
    registry.collectGarbage().then(
      (freed) => log.info(freed, "collected garbage"),
      (error: unknown) => log.error({ error }, "collecting garbage"),
    );
  }, collectEveryMs);
  await untilAborted(signal);
  clearInterval(collecting);
  await server.close();
  await registry.close();
});
