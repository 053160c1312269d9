/** A platform has enough descriptors, or says so; its servers leave some for the rest of it. */
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { connect } from "node:net";
import { connectionLimit, descriptorsOf, openFilesLimit } from "@spry/kube";
import { expect, onTestFinished, test } from "vitest";
import { listening } from "../listening.ts";
import { assertDescriptors } from "./descriptors.ts";

const isLinux = process.platform === "linux";

test("a limit that is too low for a platform ends its start, with the way out", () => {
  expect(() => assertDescriptors(64)).toThrow(
    "the limit of open files is 64, and a platform needs 512 or more",
  );
  assertDescriptors(512);
  assertDescriptors();
});

test.skipIf(!isLinux)(
  "what is open, and the limit, are known of this process and of others",
  () => {
    const { open = 0, limit = 0 } = descriptorsOf() ?? {};
    expect(open).toBeGreaterThan(2);
    expect(limit).toBeGreaterThan(open);
    expect(descriptorsOf(process.ppid)?.open).toBeGreaterThan(2);
    expect(descriptorsOf(2 ** 22)).toBeUndefined();
    expect(openFilesLimit()).toBe(limit);
    expect(connectionLimit(Infinity, 0.1)).toBe(Math.floor(limit * 0.1));
    expect(connectionLimit(5, 0.5)).toBe(5);
  },
);

test("a server of the platform's own takes so many connections, and closes others", async () => {
  const server = createServer((_request, response) => response.end("hello"));
  const listener = await listening(server, { host: "127.0.0.1", port: 0 });
  onTestFinished(() => listener.close());
  const limit = connectionLimit(128, 0.025);
  let open = 0;
  server.on("connection", (socket) => {
    open++;
    socket.once("close", () => open--);
  });
  const sockets = Array.from({ length: limit + 20 }, () => connect(listener.port, "127.0.0.1"));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (const socket of sockets) socket.on("error", () => {});
  await expect.poll(() => sockets.filter((socket) => socket.readableEnded).length).toBe(20);
  expect(open).toBe(limit);
});

test.skipIf(!isLinux)("a connection that cannot be accepted ends no server", async () => {
  const url = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const program = `
    const { openSync, closeSync } = await import("node:fs");
    const { createServer } = await import("node:http");
    const { listening } = await import(${url("../listening.ts")});
    const server = createServer((_request, response) => response.end("hello"));
    const { port } = await listening(server, { host: "127.0.0.1", port: 0 });
    const all = [];
    const useUp = () => { try { for (;;) all.push(openSync("/dev/null")); } catch {} };
    useUp();
    process.stdout.write(String(port));
    const again = setInterval(useUp, 1);
    setTimeout(() => { clearInterval(again); for (const each of all) closeSync(each); process.stdout.write("\\nfree"); }, 1500);`;
  const argv = ["--nofile=64", process.execPath, "--input-type=module", "-e", program];
  const child = spawn("prlimit", argv, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  await expect.poll(() => said).toMatch(/^\d+$/);
  const port = Number(said);
  for (let count = 0; count < 50; count++) connect(port, "127.0.0.1").on("error", () => {});
  await expect.poll(() => said).toContain("free");
  const answer = await fetch(`http://127.0.0.1:${port}`);
  expect(await answer.text()).toBe("hello");
});
