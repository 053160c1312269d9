/**
 * Knative's own programs, unmodified, against a whole platform: `kn` on Functions and Knative Services, and the tests that Knative
 * Serving itself is released by. Those of what is not served here are named in docs/rooms/serving.md.
 */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import {
  assembleImage,
  createLayer,
  createRegistry,
  parseImageName,
  pushImage,
  RegistryClient,
} from "@spry/image";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knativeImages, knativeProgram } from "../../../tools/foreign-tools/knative.ts";
import { functionManifest, Platform, run } from "../../support/platform.ts";

const lacks = [
  ...(existsSync(knativeProgram("e2e.test")) ? [] : ["npm run foreign-tools"]),
  ...(process.getuid?.() === 0 ? [] : ["root, for containers"]),
];
const title = (what: string) => (lacks.length > 0 ? `${what} (needs: ${lacks.join(", ")})` : what);
const namespace = "serving-tests";
const rowMs = 300_000;

/** Of `test/conformance/api/v1`. */
const conformance = [
  "BlueGreenRoute",
  "ServiceWithTrafficSplit",
  "RevisionGetAndList",
  "RevisionTimeout",
  "RouteGetAndList",
  "RouteCreation",
  "ConfigurationGetAndList",
  "UpdateConfigurationMetadata",
  "ServiceCreateListAndDelete",
  "ServiceCreateAndUpdate",
  "ServiceBYOName",
  "AnnotationPropagation",
  "ServiceGenerateName",
  "RouteAndConfigGenerateName",
  "ServiceAccountValidation",
  "SingleConcurrency",
  "CustomResourcesLimits",
  "ContainerErrorMsg",
  "ContainerExitingMsg",
  "ConfigMapVolume",
  "ProjectedConfigMapVolume",
  "SecretVolume",
  "ProjectedSecretVolume",
  "ProjectedComplex",
  "ProjectedServiceAccountToken",
];
/** Of `test/e2e`. */
const endToEnd = [
  "HelloWorld",
  "MultipleNamespace",
  "RoutesNotReady",
  "RollbackBYOName",
  "ImagePullError",
];

const platform = new Platform({ args: ["--no-example", "--sandbox=oci"] });
const scratch = mkdtempSync(path.join(tmpdir(), "spry-knative-"));
const closers: (() => Promise<unknown>)[] = [];
let images = "";

/** As `ko` makes them: the program, and nothing else. */
async function pushImages(): Promise<string> {
  const registry = createRegistry({ dir: path.join(scratch, "registry") });
  const server = await registry.listen({ host: "127.0.0.1", port: 0 });
  closers.push(() => server.close().then(() => registry.close()));
  const host = `127.0.0.1:${server.port}`;
  const client = new RegistryClient({ resolve: () => ({ url: `http://${host}` }) });
  for (const name of knativeImages) {
    const content = readFileSync(knativeProgram(`images/${name}`));
    const layer = await createLayer([{ path: `ko-app/${name}`, content, mode: 0o755 }]);
    const config = { Entrypoint: [`/ko-app/${name}`], User: "65532" };
    const image = assembleImage({ layers: [layer], config });
    await pushImage(client, image, parseImageName(`${host}/${name}:latest`));
  }
  return host;
}

/** One of its tests; the log of one that fails is the error. */
async function runTest(program: string, name: string): Promise<void> {
  const flags = [
    `-test.run=^Test${name}$`,
    "-test.v",
    `-test.timeout=${rowMs / 1000 - 10}s`,
    `-kubeconfig=${platform.kubeconfig}`,
    `-dockerrepo=${images}`,
    "-imagetemplate={{.Repository}}/{{.Name}}:{{.Tag}}",
    "-tag=latest",
    "-ingressendpoint=127.0.0.1",
    "-disable-logstream",
  ];
  const env = { PATH: process.env["PATH"], HOME: scratch, SYSTEM_NAMESPACE: "knative-serving" };
  const output = await new Promise<string>((resolve, reject) => {
    execFile(
      knativeProgram(program),
      flags,
      { env, cwd: scratch, maxBuffer: 64 * 2 ** 20 },
      (error, stdout, stderr) => {
        const log = `${stdout}${stderr}`;
        if (error) reject(new Error(log.slice(-8_000)));
        else resolve(log);
      },
    );
  });
  expect(output).toMatch(new RegExp(`^--- PASS: Test${name} `, "m"));
}

describe.skipIf(lacks.length > 0)(title("Knative's own programs"), () => {
  beforeAll(async () => {
    await platform.start();
    images = await pushImages();
    for (const name of [namespace, `${namespace}-alt`, "istio-system"])
      await platform.k(`create namespace ${name}`);
    // Where the suite looks for what serves Routes; it is reached by `-ingressendpoint`.
    await platform.k(
      "create service clusterip istio-ingressgateway --tcp=80 --namespace istio-system",
    );
  }, 180_000);
  afterAll(async () => {
    await platform.remove();
    for (const close of closers) await close();
    rmSync(scratch, { recursive: true, force: true });
  }, 60_000);

  describe("kn", () => {
    const kn = async (...args: string[]) => {
      const command = ["--kubeconfig", platform.kubeconfig, ...args];
      const { code, stdout, stderr } = await run(knativeProgram("kn"), command);
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout;
    };

    beforeAll(async () => {
      const onDemand = { scaleConfig: { minReplicas: 0, maxReplicas: 2 } };
      for (const word of ["one", "two"]) {
        const source = `module.exports = { main: () => "${word}" };`;
        await platform.k("apply -f -", functionManifest("dice", source, onDemand));
        await platform.callUntil("dice.default", ({ body }) => body === word);
      }
    }, rowMs);

    test("service list shows a Function that is served on demand", async () => {
      const [head = "", row = ""] = (await kn("service", "list")).split("\n");
      expect(head.split(/\s{2,}/).slice(0, 3)).toEqual(["NAME", "URL", "LATEST"]);
      expect(row).toMatch(/^dice\s+http:\/\/dice\.default\.localhost:\d+\s+dice-00002\s/);
      expect(row).toMatch(/\s3 OK \/ 3\s+True\s/);
    });

    test("service describe shows its conditions and its revisions", async () => {
      const text = await kn("service", "describe", "dice");
      expect(text).toMatch(/^Name:\s+dice$/m);
      expect(text).toMatch(/^URL:\s+http:\/\/dice\.default\.localhost:\d+$/m);
      expect(text).toMatch(/100%\s+@latest \(dice-00002\) \[2\]/);
      for (const type of ["Ready", "ConfigurationsReady", "RoutesReady"])
        expect(text).toMatch(new RegExp(`\\+\\+ ${type}\\s`));
    });

    test("revision list shows what has which part of the traffic", async () => {
      const rows = (await kn("revision", "list")).split("\n");
      expect(rows[1]).toMatch(/^dice-00002\s+dice\s+100%\s+2\s.*\sTrue\s*$/);
      expect(rows[2]).toMatch(/^dice-00001\s+dice\s+1\s.*\sTrue\s*$/);
    });
  });

  test.each(conformance)("conformance: Test%s", (name) => runTest("conformance.test", name), rowMs);
  test.each(endToEnd)("end to end: Test%s", (name) => runTest("e2e.test", name), rowMs);
});
