import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { inClusterConfig } from "./in-cluster-config.ts";

const mountPath = "/var/run/secrets/kubernetes.io/serviceaccount";
const env = { KUBERNETES_SERVICE_HOST: "127.0.0.1", KUBERNETES_SERVICE_PORT: "6443" };

test("it names the Pod's namespace, and shows nothing that a link in the volume leads to", async () => {
  const dir = temporaryDirectory();
  const source = path.join(dir, "volume");
  mkdirSync(source);
  writeFileSync(path.join(dir, "admin.key"), "the platform's key");
  symlinkSync("../admin.key", path.join(source, "namespace"));
  const mounts = [{ mountPath, source, readOnly: false }];
  const file = await inClusterConfig(dir, mounts, env, "shop");
  const text = readFileSync(file ?? "", "utf8");
  expect(JSON.parse(text)).toMatchObject({ contexts: [{ context: { namespace: "shop" } }] });
  expect(text).not.toContain("the platform's key");
});
