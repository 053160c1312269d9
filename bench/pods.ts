/** From a Pod's creation until it is Running, in both sandboxes; in `oci` next to a start of the OCI runtime alone. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { loadKubeconfig } from "@spry/kube";
import { functionManifest, Platform } from "../test/support/platform.ts";
import { ApiClient } from "./api-client.ts";
import { measureUnit, quantile, timeLine } from "./figures.ts";

const rounds = 40;
const podsPath = "/api/v1/namespaces/default/pods";

export async function run(): Promise<void> {
  const unit = measureUnit();
  console.log(`ν = ${unit.toFixed(1)} ms\n`);
  const processes = await measure("process", () => {});
  console.log(timeLine("process: created to Running", processes, unit, 3));
  const missing = whyNoRuntime();
  if (missing) return console.log(`oci: not measured, ${missing}`);
  const runtime = new RuntimeAlone();
  try {
    const alone: number[] = [];
    const pods = await measure("oci", () => alone.push(runtime.start()));
    const ratio = quantile(pods, 0.5) / quantile(alone, 0.5);
    console.log(timeLine("oci: created to Running", pods, unit));
    console.log(timeLine("  runc run --detach, the same round", alone, unit));
    console.log(
      `  × ${ratio.toFixed(2)} of the runtime's own start (aim ≤ 2 ${ratio <= 2 ? "✔" : "✘"})`,
    );
  } finally {
    runtime.remove();
  }
}

/** Milliseconds of each round; `beside` runs between them. */
async function measure(sandbox: string, beside: () => void): Promise<number[]> {
  const platform = new Platform({ args: ["--no-example", `--sandbox=${sandbox}`] });
  try {
    await platform.start();
    const image = await anImage(platform);
    const config = loadKubeconfig(platform.kubeconfig);
    const client = new ApiClient(config.server, {
      ca: config.certificateAuthority,
      cert: config.clientCertificate,
      key: config.clientKey,
    });
    const times: number[] = [];
    for (let round = -5; round < rounds; round++) {
      const time = await untilRunning(client, `pod-${round + 5}`, image);
      beside();
      // What has never run is slower than it will be.
      if (round >= 0) times.push(time);
    }
    client.close();
    return times;
  } finally {
    await platform.remove();
  }
}

/** One that is on the node already: pulling is not what is measured. */
async function anImage(platform: Platform): Promise<string> {
  const source = `module.exports = { main: () => "" };`;
  await platform.k("apply -f -", functionManifest("image", source));
  await platform.k("wait --for=condition=Running function/image --timeout=120s");
  const jsonpath = "jsonpath={.items[0].spec.template.spec.containers[0].image}";
  return platform.k(`get deployments -o ${jsonpath}`);
}

async function untilRunning(client: ApiClient, name: string, image: string): Promise<number> {
  const command = ["sleep", "1000"];
  const manifest = {
    metadata: { name },
    spec: {
      terminationGracePeriodSeconds: 0,
      containers: [{ name: "main", image, command }],
    },
  };
  const isRunning = Promise.withResolvers<number>();
  const query = `?watch=true&fieldSelector=metadata.name%3D${name}`;
  const stop = await client.watch(podsPath + query, (line) => {
    if (line.includes('"phase":"Running"')) isRunning.resolve(performance.now());
  });
  const begin = performance.now();
  await client.send("POST", podsPath, JSON.stringify(manifest));
  const end = await isRunning.promise;
  stop();
  await client.send("DELETE", `${podsPath}/${name}?gracePeriodSeconds=0`);
  return end - begin;
}

function whyNoRuntime(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "it needs root on Linux";
  return spawnSync("runc", ["--version"]).status === 0 ? undefined : "there is no runc";
}

/** A container with the namespaces of `runc spec`, and this machine's programs for its root. */
class RuntimeAlone {
  readonly #bundle = mkdtempSync(path.join(tmpdir(), "bench-runc-"));

  constructor() {
    const rootfs = path.join(this.#bundle, "rootfs");
    execFileSync("runc", ["spec"], { cwd: this.#bundle });
    const file = path.join(this.#bundle, "config.json");
    const spec = JSON.parse(readFileSync(file, "utf8"));
    spec.process = { ...spec.process, terminal: false, args: ["sleep", "1000"] };
    for (const source of ["/usr", "/bin", "/lib", "/lib64"]) {
      mkdirSync(path.join(rootfs, source), { recursive: true });
      const options = ["rbind", "ro"];
      spec.mounts.push({ destination: source, type: "bind", source, options });
    }
    writeFileSync(file, JSON.stringify(spec));
  }

  /** Milliseconds. */
  start(): number {
    const id = path.basename(this.#bundle);
    const begin = performance.now();
    execFileSync("runc", ["run", "--detach", "--bundle", this.#bundle, id], { stdio: "ignore" });
    const time = performance.now() - begin;
    execFileSync("runc", ["delete", "--force", id]);
    return time;
  }

  remove(): void {
    rmSync(this.#bundle, { recursive: true });
  }
}
