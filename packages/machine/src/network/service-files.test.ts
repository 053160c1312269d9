import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { type ServiceView } from "./cluster-view.ts";
import { ServiceFiles } from "./service-files.ts";

const service = (namespace: string, clusterIp: string): ServiceView => ({
  namespace,
  name: "s",
  clusterIp,
  ports: [],
  addresses: [],
});

test("what could not be written is written the next time", async () => {
  const dataDir = temporaryDirectory();
  const files = new ServiceFiles(dataDir);
  const services = [service("a", "10.96.0.2"), service("b", "10.96.0.3")];
  const obstacle = path.join(dataDir, "services", "names", "b");
  mkdirSync(path.dirname(obstacle), { recursive: true });
  writeFileSync(obstacle, "");
  await expect(files.apply(services)).rejects.toThrow(/EEXIST|ENOTDIR/);
  rmSync(obstacle);
  await files.apply(services);
  const addressesOf = (namespace: string) =>
    JSON.parse(readFileSync(path.join(files.viewOf(namespace), "s.json"), "utf8")).addresses;
  expect([addressesOf("a"), addressesOf("b")]).toEqual([["10.96.0.2"], ["10.96.0.3"]]);
});
