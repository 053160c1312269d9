import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";

/** Their newest versions all of whose dependencies can be fetched. */
const client = "knative.dev/client@v0.42.0";
const serving = "knative.dev/serving@v0.42.2";

/** Programs that the suite runs as Knative Services (`test/test_images`). */
export const knativeImages = [
  "autoscale",
  "failing",
  "grpc-ping",
  "hellohttp2",
  "hellovolume",
  "helloworld",
  "httpproxy",
  "multicontainer/servingcontainer",
  "multicontainer/sidecarcontainer",
  "pizzaplanetv1",
  "pizzaplanetv2",
  "readiness",
  "runtime",
  "singlethreaded",
  "slowstart",
  "timeout",
  "volumes",
  "wsserver",
] as const;

/** Packages of its tests, by the names of the programs that they become. */
export const knativeSuites = {
  "conformance.test": "./test/conformance/api/v1",
  "conformance-v1beta1.test": "./test/conformance/api/v1beta1",
  "conformance-runtime.test": "./test/conformance/runtime",
  "e2e.test": "./test/e2e",
  "e2e-domainmapping.test": "./test/e2e/domainmapping",
  "e2e-gc.test": "./test/e2e/gc",
  "e2e-initcontainers.test": "./test/e2e/initcontainers",
  "e2e-tagheader.test": "./test/e2e/tagheader",
} as const;

export type KnativeSuite = keyof typeof knativeSuites;

/** A program of Knative: `kn`, one of `knativeSuites`, or `images/<name>`. */
export function knativeProgram(name: string): string {
  const versions = [client, serving].map((module) => module.split("@")[1]).join("-");
  return path.join(path.dirname(cacheDir()), "foreign-tools", `knative-${versions}`, name);
}

/** Knative's own definitions, as its releases install them; undefined when its sources have not been downloaded. */
export function knativeDefinitions(): string | undefined {
  const cache = execFileSync("go", ["env", "GOMODCACHE"], { encoding: "utf8" }).trim();
  const directory = path.join(cache, serving, "config/core/300-resources");
  return existsSync(directory) ? directory : undefined;
}

/** Builds the missing programs. Each module is built unchanged, with its own go.mod and go.sum. Throws when Go fails. */
export function buildKnative(): void {
  build(client, "kn", ["build"], "./cmd/kn");
  const tests = ["test", "-c", "-tags=e2e"];
  for (const [name, from] of Object.entries(knativeSuites)) build(serving, name, tests, from);
  for (const image of knativeImages)
    build(serving, `images/${image}`, ["build"], `./test/test_images/${image}`);
}

function build(module: string, name: string, command: string[], from: string): void {
  const program = knativeProgram(name);
  if (existsSync(program)) return;
  mkdirSync(path.dirname(program), { recursive: true });
  console.error(`building ${name} of Knative; this happens once ...`);
  const described = execFileSync("go", ["mod", "download", "-json", module], { encoding: "utf8" });
  const { Dir } = JSON.parse(described) as { Dir: string };
  const partial = `${program}.partial`;
  const flags = ["-mod=readonly", "-p=1", "-trimpath", `-o=${partial}`];
  execFileSync("nice", ["-n", "19", "go", ...command, ...flags, from], {
    cwd: Dir,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
  });
  renameSync(partial, program);
}
