import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { expect, test } from "vitest";
import { silentLogger } from "@spry/kube";
import { kubeconfigFor } from "./kubeconfig.ts";
import { OwnPorts } from "./own-ports.ts";
import { listenAgain, portBefore } from "./port-before.ts";

const file = path.join(mkdtempSync(path.join(tmpdir(), "port-")), "kubeconfig");

test("is that of the kubeconfig that was written before, if there is one", () => {
  expect(portBefore(file)).toBe(0);
  const client = { cert: "c", key: "k" } as never;
  const server = "https://127.0.0.1:41234";
  writeFileSync(file, kubeconfigFor({ server, ca: "ca", user: "gateway", client }));
  expect(portBefore(file)).toBe(41_234);
  writeFileSync(file, "server: https://127.0.0.1:99999");
  expect(portBefore(file)).toBe(0);
});

test("another one will do where it is taken; other failures count", async () => {
  const port = await freePort();
  const ports = new OwnPorts(path.dirname(file), silentLogger);
  const listen = (wanted: number) =>
    new Promise<number>((resolve, reject) => {
      const server = createServer().once("error", reject);
      server.listen(wanted, "127.0.0.1", () => {
        resolve((server.address() as { port: number }).port);
        server.unref();
      });
    });
  expect(await listenAgain(port, listen, ports)).toBe(port);
  expect(await listenAgain(port, listen, ports)).not.toBe(port);
  await expect(listenAgain(port, () => Promise.reject(new Error("no")), ports)).rejects.toThrow(
    "no",
  );
});
