import cluster from "node:cluster";
import { type MainProgram } from "../application/main-program.ts";
import { type FunctionServer } from "../server.ts";
import { type Message } from "./hot-reload.ts";

/** The other side of hot-reload.ts, in a child. `onCurrent` is called when no other version serves any more. */
export function serveReloaded(server: FunctionServer, onCurrent: () => void): void {
  let failure: string | undefined;
  server.prependListener("request", (_request, response) => {
    if (failure !== undefined) response.setHeader("x-function-reload-error", failure);
  });
  process.on("message", (message: Message) => {
    if (message === "current") onCurrent();
    else if (message === "retire") retire(server);
    else if (typeof message === "object" && "failed" in message)
      failure = message.failed.replace(/[^\x20-\x7e]/g, "?");
  });
  tell("ready");
}

/** That program is to be started as the main one, by who has started this process; this one ends. */
export function reportMainProgram({ file, preloads }: MainProgram): void {
  cluster.worker?.send({ main: { file, preloads } } satisfies Message, () => process.exit(0));
}

/** What is under way is finished; nothing new comes in, also on connections that are open. */
function retire(server: FunctionServer): void {
  server.prependListener("request", (_request, response) => {
    response.setHeader("connection", "close");
  });
  server.close();
  server.closeIdleConnections();
  tell("retired");
  process.emit("SIGTERM");
}

function tell(message: Message): void {
  cluster.worker?.send(message);
}
