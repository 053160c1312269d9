/**
 * Knative's own programs, unmodified, against a whole platform: `kn` on Functions and Knative Services, and the tests that Knative
 * Serving itself is released by. Those of what is not served here are named in docs/knative.md.
 */
import { existsSync } from "node:fs";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { knativeProgram } from "../../../tools/foreign-tools/knative.ts";
import { freeNodePort, KnativeTests, onMachine } from "../../support/knative-suite.ts";
import { features, knativeRows } from "../../support/knative-rows.ts";
import { functionManifest, Platform, run } from "../../support/platform.ts";

const lacks = [
  ...(existsSync(knativeProgram("e2e.test")) ? [] : ["npm run foreign-tools"]),
  ...(process.getuid?.() === 0 ? [] : ["root, for containers"]),
];
const title = (what: string) => (lacks.length > 0 ? `${what} (needs: ${lacks.join(", ")})` : what);
const rowMs = 300_000;

const gatewayPort = await freeNodePort();
const registryPort = await freePort();
const platform = new Platform({
  args: [
    "--no-example",
    "--sandbox=oci",
    `--gateway-port=${gatewayPort}`,
    `--allow-loopback=127.0.0.1:${registryPort}`,
  ],
});
const suite = new KnativeTests({ ...onMachine(platform), registryPort });

describe.skipIf(lacks.length > 0)(title("Knative's own programs"), () => {
  beforeAll(async () => {
    await platform.start();
    await suite.prepare();
    await suite.configure("config-features", features);
  }, 600_000);
  afterAll(async () => {
    await platform.remove();
    await suite.close();
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

    test(
      "service create runs an image, update changes it and splits the traffic, delete removes all of it",
      async () => {
        const ofDice = "get ksvc dice -o jsonpath={.spec.template.spec.containers[0].image}";
        const image = await platform.k(ofDice);
        const made = await kn("service", "create", "made", "--image", image, "--port", "8080");
        expect(made).toMatch(/http:\/\/made\.default\.localhost:\d+/);
        expect(await platform.call("made.default")).toMatchObject({ status: 200, body: "two" });
        const traffic = ["--traffic", "made-00001=40,@latest=60", "--tag", "made-00001=old"];
        await kn(
          "service",
          "update",
          "made",
          "--env",
          "A=1",
          "--revision-name",
          "made-b",
          ...traffic,
        );
        expect(await platform.call("old-made.default")).toMatchObject({ status: 200, body: "two" });
        const rows = (await kn("revision", "list", "-s", "made")).split("\n");
        expect(rows[1]).toMatch(/^made-b\s+made\s+60%\s/);
        expect(rows[2]).toMatch(/^made-00001\s+made\s+40%\s+old\s/);
        await kn("service", "delete", "made", "--wait");
        expect(await kn("service", "list")).not.toContain("made");
        expect(await platform.k("get revisions -l serving.knative.dev/service=made -o name")).toBe(
          "",
        );
      },
      rowMs,
    );

    test(
      "service apply, revisions, routes and domains of an image",
      async () => {
        const ofDice = "get ksvc dice -o jsonpath={.spec.template.spec.containers[0].image}";
        const image = await platform.k(ofDice);
        const apply = ["service", "apply", "applied", "--image", image, "--port", "8080"];
        expect(await kn(...apply, "--env", "A=1")).toContain("created");
        expect(await kn(...apply, "--env", "A=2", "--scale-max", "2")).toContain("applied-00002");
        expect(await kn(...apply, "--env", "A=2", "--scale-max", "2")).toContain("No changes");
        const described = await kn("service", "describe", "applied");
        expect(described).toMatch(/100%\s+@latest \(applied-00002\) \[2\]/);
        expect(await kn("route", "list")).toMatch(
          /^applied\s+http:\/\/applied\.default\S+\s+True$/m,
        );
        expect(await kn("route", "describe", "applied")).toMatch(/^Service:\s+applied$/m);
        const first = await kn("revision", "describe", "applied-00001");
        expect(first).toMatch(/^Service:\s+applied$/m);
        expect(first).toContain("A=1");
        await kn("revision", "delete", "applied-00001", "--wait");
        expect(await kn("revision", "list", "-s", "applied")).not.toContain("applied-00001");
        await kn("domain", "create", "applied.shop.example", "--ref", "ksvc:applied");
        expect(await kn("domain", "list")).toMatch(/^applied\.shop\.example\s.*\sTrue/m);
        const domain = await kn("domain", "describe", "applied.shop.example");
        expect(domain).toMatch(/^Name:\s+applied\.shop\.example$/m);
        expect(domain).toMatch(/Name:\s+applied$/m);
        await kn("domain", "update", "applied.shop.example", "--ref", "ksvc:dice");
        await kn("domain", "delete", "applied.shop.example");
        await kn("service", "delete", "applied", "--wait");
      },
      rowMs,
    );

    test.each([
      [["--concurrency-limit", "2000"], "expected 0 <= 2000 <= 1000"],
      [["--annotation", "autoscaling.knative.dev/target=0"], "should be at least 0.01"],
      [["--port", "h3:8080"], "h3"],
      [["--scale-min", "3", "--scale-max", "2"], "max-scale=2 is less than min-scale=3"],
    ])(
      "what cannot be served is refused in Knative's words: %s",
      async (flags, message) => {
        const args = ["service", "create", "wrong", "--image", "example.com/any:1", ...flags];
        const command = ["--kubeconfig", platform.kubeconfig, ...args];
        const { code, stderr } = await run(knativeProgram("kn"), command);
        expect(code).toBe(1);
        expect(stderr).toContain(message);
      },
      rowMs,
    );

    test("revision list shows what has which part of the traffic", async () => {
      const rows = (await kn("revision", "list")).split("\n");
      expect(rows[1]).toMatch(/^dice-00002\s+dice\s+100%\s+2\s.*\sTrue\s*$/);
      expect(rows[2]).toMatch(/^dice-00001\s+dice\s+1\s.*\sTrue\s*$/);
    });
  });

  knativeRows(suite);
});
