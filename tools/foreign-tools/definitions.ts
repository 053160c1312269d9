import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";

/** Go modules of projects whose CustomResourceDefinitions and examples the embedded API server is to take. */
export const modules = {
  "cert-manager": "github.com/cert-manager/cert-manager@v1.21.2",
  /** The last version whose programs are in the module of its definitions, too: later ones are in modules that no proxy has. */
  "cert-manager-programs": "github.com/cert-manager/cert-manager@v1.11.5",
  "prometheus-operator": "github.com/prometheus-operator/prometheus-operator@v0.85.0",
  "gateway-api": "sigs.k8s.io/gateway-api@v1.6.3",
  "cluster-api": "sigs.k8s.io/cluster-api@v1.14.2",
  keda: "github.com/kedacore/keda/v2@v2.21.0",
  /** The newest versions all of whose dependencies can be fetched, for Flux and Argo Rollouts. */
  "source-controller": "github.com/fluxcd/source-controller@v1.9.0",
  "kustomize-controller": "github.com/fluxcd/kustomize-controller@v1.9.0",
  "argo-rollouts": "github.com/argoproj/argo-rollouts@v1.9.2",
};

export type Project = keyof typeof modules;

/** The project's sources in Go's module cache; undefined where they are not there, or no Go. */
export function sourcesOf(project: Project): string | undefined {
  const { status, stdout } = spawnSync("go", ["env", "GOMODCACHE"], { encoding: "utf8" });
  const dir = status === 0 ? path.join(stdout.trim(), modules[project]) : undefined;
  return dir !== undefined && existsSync(dir) ? dir : undefined;
}

/** Has Go fetch what is not there; throws when it cannot. Sums are those of Go's checksum database. */
export function downloadSources(): void {
  for (const [project, module] of Object.entries(modules)) {
    if (sourcesOf(project as Project) !== undefined) continue;
    console.error(`fetching the sources of ${project}; this happens once ...`);
    execFileSync("go", ["mod", "download", module], { stdio: ["ignore", 2, 2] });
  }
}
