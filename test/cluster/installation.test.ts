/** What `spry install` makes of other values, on a real control plane: nothing runs here, the objects are looked at. */
import { writeFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { labels, managedBy } from "@spry/function";
import { type Serverless, serverlesses } from "@spry/controller";
import { type Deployment, resources } from "@spry/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inventory } from "../support/cluster-inventory.ts";
import { root, run } from "../support/platform.ts";
import { RealCluster, whyNoCluster } from "../support/real-cluster.ts";

/** A given cluster may have an installation already. */
const reason = process.env["KUBECONFIG"] ? "needs a control plane of its own" : whyNoCluster();
const cluster = new RealCluster();
const scratch = mkdtempSync(path.join(tmpdir(), "installation-"));
const system = "kyma-system";
const names = ["controller", "builder", "nodejs24", "registry", "gateway"];
const image = (name: string) => `registry.example/${name}@sha256:${"0".repeat(64)}`;
const images = Object.fromEntries(names.map((name) => [name, image(name)]));

function install(values: object, ...options: string[]) {
  const file = path.join(scratch, "values.json");
  writeFileSync(file, JSON.stringify({ images, ...values }));
  const main = path.join(root, "packages/cli/bin/spry.mjs");
  const kubeconfig = ["--kubeconfig", cluster.own?.kubeconfig ?? ""];
  const args = [main, ...kubeconfig, "install", "--no-wait", "--values", file, ...options];
  return run(process.execPath, args);
}

/** `Kind namespace/name` of what was applied for a component; what Kubernetes' controllers make of it is not looked at. */
async function present(component: string): Promise<string[]> {
  const made = /^(Pod|ReplicaSet|Endpoints) /;
  const all = await inventory(cluster.client);
  return all.filter((each) => each.includes(`-${component}`) && !made.test(each));
}

const withoutGateway = { gateway: { enabled: false } };
const withoutRegistry = {
  ...withoutGateway,
  registry: { enabled: false },
  serverless: { dockerRegistry: { enableInternal: false, secretName: "mine" } },
};

describe.skipIf(reason !== undefined)(
  `spry install${reason ? ` (skipped: ${reason})` : ""}`,
  () => {
    beforeAll(() => cluster.start());
    afterAll(async () => {
      await cluster.stop();
      rmSync(scratch, { recursive: true, force: true });
    });

    test("a component that later values leave out goes, and what others have made stays", async () => {
      expect((await install({})).code).toBe(0);
      expect(await present("gateway")).toHaveLength(8);
      const labelsOfSpry = {
        "app.kubernetes.io/part-of": "spry",
        "app.kubernetes.io/managed-by": "spry",
      };
      const mine = { name: "my-gateway", namespace: system, labels: labelsOfSpry };
      await cluster.client.create(resources.serviceAccounts, { metadata: mine });

      const dry = await install(withoutGateway, "--dry-run");
      expect(dry.stderr).toContain("deployment/serverless-gateway would be deleted");
      expect(dry.stdout).not.toContain("serverless-gateway");
      expect(await present("gateway")).toHaveLength(9);

      const { code, stderr } = await install(withoutGateway);
      expect(stderr).toContain("deployment/serverless-gateway deleted");
      expect(code).toBe(0);
      expect(await present("gateway")).toEqual([`ServiceAccount ${system}/my-gateway`]);
      expect(await present("registry")).toHaveLength(8);
    });

    test("the registry stays while it is needed, and its volume for good", async () => {
      const first = await install(withoutRegistry);
      expect(first.stderr).toMatch(
        /deployment\/serverless-docker-registry is no .* kept: serverless kyma-system\/default says dockerRegistry.enableInternal/,
      );
      expect(await present("registry")).toHaveLength(8);

      const configuration = { namespace: system, name: "default" };
      await cluster.client.patch<Serverless>(serverlesses, configuration, {
        spec: withoutRegistry.serverless,
      });
      const fn = { namespace: "default", name: "shop" };
      await cluster.client.create(resources.deployments, deploymentOf(fn));
      const second = await install(withoutRegistry);
      expect(second.stderr).toContain("kept: the images of Functions are in it: default/shop");
      expect(await present("registry")).toHaveLength(8);

      await cluster.client.delete(resources.deployments, fn);
      const third = await install(withoutRegistry);
      expect(third.stderr).toContain(
        "serverless-docker-registry is no longer part of the values, but is kept: it holds data",
      );
      expect(await present("registry")).toEqual([
        `PersistentVolumeClaim ${system}/serverless-docker-registry`,
      ]);
    });

    test("without a cluster a dry run still prints the objects", async () => {
      const main = path.join(root, "packages/cli/bin/spry.mjs");
      const values = path.join(scratch, "values.json");
      const nowhere = ["--kubeconfig", path.join(scratch, "nowhere")];
      const args = [main, ...nowhere, "install", "--dry-run", "--values", values];
      const { code, stdout, stderr } = await run(process.execPath, args);
      expect(stdout).toContain("name: serverless-controller");
      expect(stderr).toContain("what would be deleted is not known: no cluster to talk to");
      expect(code).toBe(0);
    });
  },
);

/** As the controller makes one, with an image in the registry of the installation. */
function deploymentOf(metadata: { namespace: string; name: string }): Deployment {
  const matchLabels = { [labels.managedBy]: managedBy, [labels.functionName]: metadata.name };
  const containers = [{ name: "function", image: `localhost:32137/${metadata.name}` }];
  return {
    metadata: { ...metadata, labels: matchLabels },
    spec: {
      selector: { matchLabels },
      template: { metadata: { labels: matchLabels }, spec: { containers } },
    },
  };
}
