/** A Pod with a port that the platform needs is found by what it cannot change, and ended; others go on. */
import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../../../test/kit/index.ts";
import { temporaryDirectory } from "../testing.ts";
import { findPython } from "./python-installations.ts";
import { endPodsAtPort } from "./port-holders.ts";
import { openProcessSandbox, processSandbox } from "./process-sandbox.ts";
import { type Sandbox } from "./sandbox.ts";
import { containerSpec } from "./testing.ts";

const python = await findPython("3.12").then((found) => found?.executable);

/** `how` gets the port; a statement of Python. */
const program = (how: string) => `
import os, socket, sys, time
port = int(sys.argv[1])
${how}
open(sys.argv[2], "w").write("bound")
time.sleep(60)`;
const bind = (address: string, family = "AF_INET") =>
  `s = socket.socket(socket.${family}); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind((${JSON.stringify(address)}, port))`;
/** A process of its own, in a session of its own, with nothing of its parent's environment. */
const apart = (how: string) => `
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execve(sys.executable, [sys.executable, "-c", ${JSON.stringify(program(how))}, *sys.argv[1:]], {})
    os._exit(0)
time.sleep(60)`;

async function startPod(sandbox: Sandbox, uid: string, argv: string[]) {
  const place = await sandbox.openPod({ uid, namespace: "tenant", name: uid });
  onTestFinished(() => place.close());
  return place.start(containerSpec(place.dir, { argv }));
}

const isTaken = (port: number, host: string) =>
  new Promise<boolean>((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(true));
    server.listen(port, host, () => server.close(() => resolve(false)));
  });

const kinds = [
  { kind: "plain processes", open: processSandbox },
  { kind: "processes kept apart", open: openProcessSandbox },
];
const ways: [string, string, string][] = [
  ["127.0.0.1", bind("127.0.0.1") + "; s.listen()", "127.0.0.1"],
  ["all addresses", bind("0.0.0.0") + "; s.listen()", "127.0.0.1"],
  ["::1", bind("::1", "AF_INET6") + "; s.listen()", "::1"],
  ["all addresses of IPv6", bind("::", "AF_INET6") + "; s.listen()", "127.0.0.1"],
  ["127.0.0.1 without listening", `s = socket.socket(); s.bind(("127.0.0.1", port))`, "127.0.0.1"],
];

const isRoot = process.platform === "linux" && process.getuid?.() === 0;

describe.skipIf(!isRoot || python === undefined).each(kinds)("$kind", ({ kind, open }) => {
  const isApart = kind !== "plain processes";
  test.each([
    ...ways,
    // Plain processes of one user have nothing that they cannot put off.
    ...(isApart
      ? ways.map(([what, how, host]): [string, string, string] => [
          `${what}, apart`,
          apart(how),
          host,
        ])
      : []),
  ])("a Pod that has a port at %s", async (what, how, host) => {
    const dataDir = temporaryDirectory();
    const sandbox = await open({ dataDir });
    await sandbox.recover();
    const port = await freePort();
    const text = what.endsWith("apart") ? `import os, socket, sys, time\n${how}` : program(how);
    const argv = [python ?? "", "-c", text, String(port), "/tmp/bound"];
    const [holder, other] = await Promise.all([
      startPod(sandbox, "holder", isApart ? ["/usr/bin/python3", ...argv.slice(1)] : argv),
      startPod(sandbox, "other", ["/bin/sleep", "60"]),
    ]);
    let isOver = false;
    void other.exited.then(() => (isOver = true));
    await expect.poll(() => isTaken(port, host)).toBe(true);
    expect(await endPodsAtPort({ dataDir, port, isTaken: true })).toEqual([
      { namespace: "tenant", name: "holder" },
    ]);
    await holder.exited;
    expect(await isTaken(port, host)).toBe(false);
    expect(isOver).toBe(false);
    expect(await endPodsAtPort({ dataDir, port })).toEqual([]);
  });

  test("another program's port, and one that is free, end no Pod", async () => {
    const dataDir = temporaryDirectory();
    const sandbox = await open({ dataDir });
    await sandbox.recover();
    const container = await startPod(sandbox, "bystander", ["/bin/sleep", "60"]);
    const server = createServer();
    const port = await new Promise<number>((resolve) =>
      server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port)),
    );
    onTestFinished(() => void server.close());
    expect(await endPodsAtPort({ dataDir, port, isTaken: true })).toEqual([]);
    expect(await endPodsAtPort({ dataDir, port: 0, isTaken: true })).toEqual([]);
    expect((await container.exec(["/bin/echo", "on"], { timeoutMs: 5_000 })).exitCode).toBe(0);
  });
});
