/** Images of ours in containerd, which nobody here wrote: it pulls, unpacks and runs them. */
import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { endChild, hasEnded } from "@spry/test-kit";
import { describe, expect, onTestFinished, test } from "vitest";
import { buildFunctionImage } from "../index.ts";
import { given } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";

const isThere = ["containerd", "ctr"].every(
  (program) => spawnSync(program, ["--version"]).status === 0,
);
const isRoot = process.getuid?.() === 0;

/** A containerd of its own; returns its client. */
async function startContainerd(): Promise<(...args: string[]) => Promise<string>> {
  const dir = temporaryDirectory();
  const socket = join(dir, "containerd.sock");
  const config = `version = 2
root = "${dir}/root"
state = "${dir}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
  address = "${socket}"
`;
  writeFileSync(join(dir, "config.toml"), config);
  const daemon = spawn("containerd", ["-c", join(dir, "config.toml")], { stdio: "ignore" });
  onTestFinished(async () => void (await endChild(daemon, "SIGTERM")));
  while (!existsSync(socket)) {
    if (hasEnded(daemon))
      throw new Error(`containerd ended with ${daemon.exitCode ?? daemon.signalCode}`);
    await pause(20);
  }
  return async (...args) =>
    (await promisify(execFile)("ctr", ["--address", socket, ...args])).stdout;
}

describe.skipIf(!isThere || !isRoot)(
  isThere && isRoot ? "containerd" : "skipped: containerd with ctr is not here, or we are not root",
  () => {
    test("pulls an image that stands on nothing but itself, and runs it as who it says", async () => {
      const server = `const fs = require("node:fs");
fs.writeFileSync("/tmp/note", require("./function/handler.js").main());
console.log(process.getuid(), fs.readFileSync("/tmp/note", "utf8"));`;
      const { build } = await given(
        { "handler.js": `module.exports = { main: () => "from containerd" };` },
        {
          base: "host:",
          runtimeLayer: {
            files: [{ path: "usr/src/app/server.cjs", content: server }],
            config: { Entrypoint: ["node", "/usr/src/app/server.cjs"] },
          },
        },
      );
      const { image } = await buildFunctionImage(build);
      const ctr = await startContainerd();
      await ctr("images", "pull", "--plain-http", "--snapshotter=native", image);
      expect(await ctr("images", "ls")).toContain(image);
      const output = await ctr("run", "--rm", "--snapshotter=native", image, "once");
      expect(output).toBe("1000 from containerd\n");
    }, 120_000);
  },
);
