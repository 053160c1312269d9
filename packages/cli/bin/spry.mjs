#!/usr/bin/env node
// `spry` from a checkout: makes sure that Node 24 and the dependencies are there, then becomes the CLI.
import { spawn } from "node:child_process";
import path from "node:path";
import { ensureInstalled, environment, node24 } from "./node.mjs";
import { ensurePrograms } from "./programs.mjs";

ensureInstalled();
const node = node24();
const programs = await ensurePrograms();
const args = ["--max-semi-space-size=16", path.join(programs, "main.js"), ...process.argv.slice(2)];
const env = environment();

// Where a process can become another one, none is left behind that only waits.
if (typeof process.execve === "function") {
  process.removeAllListeners("warning");
  process.on("warning", () => {});
  process.execve(node, [node, ...args], env);
}
const child = spawn(node, args, { stdio: "inherit", env });
// The terminal sends its signals to the whole group; those sent to us alone are passed on.
for (const signal of ["SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
process.on("SIGINT", () => {});
child.on("error", (error) => {
  console.error(`starting spry: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) process.kill(process.pid, signal);
  else process.exit(code ?? 1);
});
