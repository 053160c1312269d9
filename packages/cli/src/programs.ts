import path from "node:path";

/**
 * The file of a program of ours that runs as a process of its own: beside the running one when that is a bundle
 * (see bin/programs.mjs), and the source otherwise.
 */
export function gatewayProgram(): string {
  const running = process.argv[1] ?? "";
  if (path.basename(running) === "main.js") return path.join(path.dirname(running), "gateway.js");
  return path.join(import.meta.dirname, "gateway-main.ts");
}

/** The same of the thread of the events' queue; undefined: its room's own source. */
export function queueProgram(): string | undefined {
  const running = process.argv[1] ?? "";
  return path.basename(running) === "gateway.js"
    ? path.join(path.dirname(running), "queue.js")
    : undefined;
}

/** What the processes of the platform are started with: little garbage is kept for long. */
export const nodeOptions = ["--max-semi-space-size=2"];
