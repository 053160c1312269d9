#!/usr/bin/env node
// `spry` from a checkout: makes sure that Node 24 and the dependencies are there, then becomes the CLI.
import { spawn } from "node:child_process";
import path from "node:path";
import { ensureInstalled, environment, node24, root } from "./node.mjs";

ensureInstalled();
const main = path.join(root, "packages", "cli", "src", "main.ts");
const child = spawn(node24(), [main, ...process.argv.slice(2)], {
  stdio: "inherit",
  env: environment(),
});
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
