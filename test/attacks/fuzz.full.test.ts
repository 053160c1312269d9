/**
 * Twenty minutes of requests that are nearly right, to the API server as a tenant, to the registry with that tenant's login,
 * and to the gateway: nothing fails, hangs, grows or discloses internals, and no object of another tenant changes.
 * `SPRY_TEST_FUZZ_SECONDS` sets another duration, `SPRY_TEST_SEED` other requests.
 */
import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { failsInKubernetes } from "../support/kubernetes-failures.ts";
import { functionManifest, Platform } from "../support/platform.ts";
import { processesOf } from "../support/processes.ts";
import { seeded } from "../support/seeded.ts";
import { exchange, type RawRequest, type RawResponse, type Target } from "./fuzz/raw-exchange.ts";
import { requestsTo, type Vocabulary } from "./fuzz/requests.ts";
import { apiWords, gatewayWords, registryWords } from "./fuzz/words.ts";

const seconds = Number(process.env["SPRY_TEST_FUZZ_SECONDS"] ?? 1200);
const { seed } = seeded(15);
/** Requests under way at once, to each server. */
const batch = 24;

const platform = new Platform({ args: ["--no-example"] });
const servers: Record<string, { target: Target; words: Vocabulary; mayAnswer: number[] }> = {};

beforeAll(async () => {
  await platform.start();
  await platform.k("create namespace fuzz");
  await platform.k("create serviceaccount tenant -n fuzz");
  await platform.k(
    "create rolebinding tenant --clusterrole=edit --serviceaccount=fuzz:tenant -n fuzz",
  );
  await platform.k(
    "create quota few -n fuzz --hard=pods=5,count/functions.serverless.kyma-project.io=5",
  );
  await platform.k(
    "apply -f -",
    functionManifest("canary", 'module.exports = { main: () => "sings" };'),
  );
  const echo = "module.exports = { main: (event) => event.data ?? event.extensions.request.url };";
  await platform.k("apply -f -", functionManifest("echo", echo, {}, { namespace: "fuzz" }));
  await platform.callUntil("canary.default", ({ body }) => body === "sings");
  await platform.callUntil("echo.fuzz", ({ status }) => status === 200);
  const token = (await platform.k("create token tenant -n fuzz --duration=4h")).trim();
  const config = await platform.k(
    "get secret serverless-registry-config-default -n fuzz -o jsonpath={.data.\\.dockerconfigjson}",
  );
  const [login] = Object.values(
    (
      JSON.parse(Buffer.from(config, "base64").toString()) as {
        auths: Record<string, { auth: string }>;
      }
    ).auths,
  );
  const auth = login?.auth ?? "";
  const { apiServer, registry, gateway } = platform.endpoints;
  const portOf = (url: string) => Number(new URL(url).port);
  const image = await platform.k("get function echo -n fuzz -o jsonpath={.status.build.image}");
  const digest = image.split("@")[1] ?? "";
  const manifest = await fetch(`${registry}/v2/fuzz/echo/manifests/${digest}`, {
    headers: { authorization: `Basic ${auth}` },
  });
  servers["api"] = {
    target: { port: portOf(apiServer), ca: caOf(platform.kubeconfig) },
    words: apiWords(token),
    mayAnswer: [501, 503, 504, 505],
  };
  servers["registry"] = {
    target: { port: portOf(registry) },
    words: registryWords(auth, digest, await manifest.json()),
    mayAnswer: [501, 503, 505, 507],
  };
  servers["gateway"] = {
    target: { port: portOf(gateway) },
    words: gatewayWords(),
    mayAnswer: [501, 503, 504, 505],
  };
});
afterAll(() => platform.remove());

test(
  `${seconds} s of requests to API, registry and gateway (seed ${seed})`,
  async () => {
    const others = async () =>
      JSON.stringify([
        await platform.k(
          "get functions,secrets,serviceaccounts -n default -o jsonpath={.items[*].metadata.uid}",
        ),
        await platform.k(
          "get clusterroles,clusterrolebindings,namespaces,crds -o jsonpath={.items[*].metadata.uid}",
        ),
      ]);
    const before = await others();
    const memoryBefore = memoryOf(platform.pid);
    const gatewayBefore = gatewayPid();
    const end = performance.now() + seconds * 1000;
    const counts: Record<string, Record<number, number>> = {};
    const failures: string[] = [];
    for (let round = 0; performance.now() < end && failures.length < 5; round++) {
      await Promise.all(
        Object.entries(servers).map(async ([name, { target, words, mayAnswer }]) => {
          const requests = fc.sample(requestsTo(words), {
            seed: seed * 1_000_003 + round,
            numRuns: batch,
          });
          const responses = await Promise.all(requests.map((request) => exchange(target, request)));
          for (const [index, response] of responses.entries()) {
            const count = (counts[name] ??= {});
            count[response.status] = (count[response.status] ?? 0) + 1;
            const why = complaint(response, mayAnswer);
            if (why) failures.push(report(name, round, why, requests[index]!, response));
          }
        }),
      );
      const { body } = await platform.call("canary.default");
      if (body !== "sings") failures.push(`round ${round}: the other Function answers ${body}`);
    }
    console.log(`seed ${seed}: ${JSON.stringify(counts)}`);
    expect(failures).toEqual([]);
    expect(await others()).toBe(before);
    expect(gatewayPid()).toBe(gatewayBefore);
    expect(platform.output).not.toMatch(/uncaught|unhandled/i);
    expect(memoryOf(platform.pid)).toBeLessThan(memoryBefore * 2 + 300);
    await platform.stop();
    const { code, stdout, stderr } = await platform.spry([
      "doctor",
      "--data-dir",
      platform.dataDir,
    ]);
    expect([code, stdout + stderr]).toEqual([0, expect.any(String)]);
  },
  (seconds + 400) * 1000,
);

/** Undefined when the response is acceptable, whatever the request was. */
function complaint({ status, text, hung }: RawResponse, mayAnswer: number[]): string | undefined {
  if (hung) return "no response, and no end, within 30 s";
  if (text !== "" && status === 0) return "not a response";
  if (status === 500 && failsInKubernetes.test(text)) return undefined;
  if (status >= 500 && !mayAnswer.includes(status)) return `answered ${status}`;
  const inside =
    /node:internal|node_modules|\.[cm]?[tj]s:\d+|(Type|Range|Reference|Syntax)Error\b|Cannot read prop|is not a function/;
  const disclosed =
    inside.exec(text)?.[0] ?? (text.includes(platform.dataDir) ? platform.dataDir : undefined);
  return disclosed === undefined ? undefined : `discloses ${disclosed}`;
}

function report(
  server: string,
  round: number,
  why: string,
  request: RawRequest,
  { text }: RawResponse,
): string {
  const sent = JSON.stringify(request.bytes.toString("latin1").slice(0, 3000));
  const rest = JSON.stringify({ cuts: request.cuts, leavesAfter: request.leavesAfter });
  return `${server}, round ${round}: ${why}\nsent ${sent} ${rest}\ngot ${JSON.stringify(text.slice(0, 1000))}`;
}

/** Resident, in MB. */
function memoryOf(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024;
}

function gatewayPid(): string | undefined {
  const found = processesOf(platform.dataDir).find((each) => /gateway(?:-main)?\.[jt]s/.test(each));
  return found?.split(" ")[0];
}

function caOf(kubeconfig: string): string {
  const encoded =
    /certificate-authority-data:\s*"?([\w+/=]+)/.exec(readFileSync(kubeconfig, "utf8"))?.[1] ?? "";
  return Buffer.from(encoded, "base64").toString();
}
