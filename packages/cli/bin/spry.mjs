#!/usr/bin/env node
// `spry`: makes sure that Node 24 and the dependencies are there, then becomes the CLI.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import module from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { getHeapStatistics } from "node:v8";
import { ensureInstalled, environment, isOwnNode, node24 } from "./node.mjs";
import { ensurePrograms, helpFile } from "./programs.mjs";

const given = process.argv.slice(2);
// From a PATH with it, as a user types it: messages show commands in the same way. npx has it on a PATH, too.
const isByName =
  path.basename(process.argv[1] ?? "") === "spry" && process.env.npm_command !== "exec";
ensureInstalled();
const programs = await ensurePrograms();
// Not for what is made once for all, as the text of help.
if (isByName) process.env.SPRY_COMMAND = "spry";
const main = path.join(programs, "main.js");

if (given.length === 0 || (given.length === 1 && /^(?:-h|--help|help)$/.test(given[0]))) {
  // The commonest question of all costs no second process. It may be cut short, as by head.
  process.stdout.on("error", ({ code, message }) => {
    if (code !== "EPIPE") console.error(`error: standard output cannot be written: ${message}`);
    process.exit(code === "EPIPE" ? 141 : 1);
  });
  const help = readFileSync(path.join(programs, helpFile), "utf8");
  process.stdout.write(isByName ? help.replaceAll("npx spry", "spry") : help);
} else if (isOwnNode && !given.includes("up")) {
  const env = environment();
  for (const name of Object.keys(process.env)) if (!(name in env)) delete process.env[name];
  process.env.NODE_COMPILE_CACHE = env.NODE_COMPILE_CACHE;
  module.enableCompileCache(env.NODE_COMPILE_CACHE);
  await import(pathToFileURL(main).href);
} else {
  // The C library gives each thread a heap of its own, which keeps what it once held: with two, it is some 15 MB less.
  const env = { ...(given.includes("up") && { MALLOC_ARENA_MAX: "2" }), ...environment() };
  become(node24(), ["--max-semi-space-size=16", ...heapOption(given), main, ...given], env);
}

/** All Kubernetes objects are in memory: a larger `--store-quota` needs a larger heap than Node.js takes by itself. */
function heapOption(args) {
  const at = args.findIndex((each) => each.startsWith("--store-quota"));
  const text = args[at]?.split("=")[1] ?? args[at + 1] ?? "";
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?)(|k|M|G|T|Ki|Mi|Gi|Ti)$/.exec(text) ?? [];
  if (at < 0 || amount === undefined) return [];
  const base = unit.endsWith("i") ? 1024 : 1000;
  const bytes = Number(amount) * base ** ("kmgt".indexOf(unit.charAt(0).toLowerCase() || "-") + 1);
  const heap = Math.ceil(bytes / 0.4);
  return heap > getHeapStatistics().heap_size_limit
    ? [`--max-old-space-size=${Math.ceil(heap / 2 ** 20)}`]
    : [];
}

function become(node, args, env) {
  // Where a process can become another one, none is left behind that only waits.
  if (typeof process.execve === "function") {
    process.removeAllListeners("warning");
    process.on("warning", () => {});
    process.execve(node, [node, ...args], env);
  }
  // When it is closed, the other process knows that this one was killed: there is no other sign.
  const stdio = ["inherit", "inherit", "inherit", "pipe"];
  const child = spawn(node, args, { stdio, env: { ...env, SPRY_LAUNCHER_FD: "3" } });
  child.stdio[3].on("error", () => {}).unref();
  // A terminal sends Ctrl-C to the whole group; signals sent to us alone are passed on.
  for (const signal of ["SIGTERM", "SIGHUP", "SIGUSR2"])
    process.on(signal, () => child.kill(signal));
  process.on("SIGINT", () => process.stdin.isTTY || child.kill("SIGINT"));
  child.on("error", (error) => {
    console.error(`starting spry: ${error.message}`);
    process.exit(1);
  });
  child.on("exit", (code, signal) => {
    if (!signal) process.exit(code ?? 1);
    // Its listener would keep this process from ending in the same way.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}
