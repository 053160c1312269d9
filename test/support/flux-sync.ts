import { readdirSync } from "node:fs";
import path from "node:path";
import { GitHttpServer, TestRepository } from "@spry/source/testing";
import { type flux } from "../../tools/foreign-tools/flux.ts";
import { freePort } from "../kit/index.ts";
import { ForeignPrograms } from "./foreign-programs.ts";
import { type Platform } from "./platform.ts";

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

interface Kustomization {
  status?: {
    lastAttemptedRevision?: string;
    lastAppliedRevision?: string;
    lastHandledReconcileAt?: string;
    conditions?: Condition[];
  };
}

const gitRepository = "gitrepository.source.toolkit.fluxcd.io/shop";
const kustomization = "kustomization.kustomize.toolkit.fluxcd.io/shop";
const requested = "reconcile.fluxcd.io/requestedAt";

/** Flux' controllers next to a platform, and a repository whose manifests they apply, prune and wait for. */
export class FluxSync implements AsyncDisposable {
  readonly programs = new ForeignPrograms();
  readonly #repository = new TestRepository();
  readonly #platform: Platform;
  #server: GitHttpServer | undefined;
  #requests = 0;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.programs.stop();
    await this.#server?.[Symbol.asyncDispose]();
    this.#repository[Symbol.dispose]();
  }

  async start(built: NonNullable<ReturnType<typeof flux>>): Promise<void> {
    const { kubeconfig } = this.#platform;
    for (const directory of built.definitions)
      for (const file of readdirSync(directory))
        await this.#platform.k(`apply --server-side -f ${path.join(directory, file)}`);
    const storage = `127.0.0.1:${await freePort()}`;
    const quiet = ["--metrics-addr=0", "--health-addr=0"];
    const artifacts = [`--storage-addr=${storage}`, `--storage-adv-addr=${storage}`];
    const kept = `--storage-path=${this.programs.directory}`;
    this.programs.start(built.source, [...quiet, ...artifacts, kept], kubeconfig);
    this.programs.start(built.kustomize, quiet, kubeconfig);
    this.#server = await GitHttpServer.start({ root: this.#repository.root });
  }

  /** Makes the manifests, by name, what the repository holds; returns the revision in Flux' words. */
  push(manifests: Record<string, string>): string {
    const names = Object.keys(manifests);
    const files = names.map((name) => [`apps/${name}.yaml`, manifests[name] ?? ""] as const);
    const resources = names.map((name) => `${name}.yaml`);
    const commit = this.#repository.commit({
      ...Object.fromEntries(files),
      "apps/kustomization.yaml": JSON.stringify({ resources }),
    });
    return `main@sha1:${commit}`;
  }

  /** Has them applied from now on, and again only when that is requested. */
  async install(): Promise<void> {
    const metadata = { name: "shop" };
    const interval = "1h";
    const items = [
      {
        apiVersion: "source.toolkit.fluxcd.io/v1",
        kind: "GitRepository",
        metadata,
        spec: { interval, url: `${this.#server?.origin}/shop.git`, ref: { branch: "main" } },
      },
      {
        apiVersion: "kustomize.toolkit.fluxcd.io/v1",
        kind: "Kustomization",
        metadata,
        spec: {
          interval,
          timeout: "5m",
          path: "./apps",
          prune: true,
          wait: true,
          sourceRef: { kind: "GitRepository", name: "shop" },
        },
      },
    ];
    await this.#platform.k("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  }

  /** As `flux reconcile source git shop`: a new commit is applied. */
  async fetch(): Promise<void> {
    await this.#platform.k(`annotate ${gitRepository} --overwrite ${requested}=${this.#next()}`);
  }

  /** As `flux reconcile kustomization shop`: what it has is compared with the objects again. Resolves when that is done. */
  async reconcile(): Promise<void> {
    const token = this.#next();
    await this.#platform.k(`annotate ${kustomization} --overwrite ${requested}=${token}`);
    const at = "{.status.lastHandledReconcileAt}";
    await this.#platform.k(`wait --for=jsonpath=${at}=${token} ${kustomization} --timeout=180s`);
  }

  async status(): Promise<NonNullable<Kustomization["status"]>> {
    const text = await this.#platform.k(`get ${kustomization} -o json`);
    return (JSON.parse(text) as Kustomization).status ?? {};
  }

  /** Its condition, with the message; undefined unless it is of this revision. */
  async condition(type: string, revision: string): Promise<Condition | undefined> {
    const { lastAttemptedRevision, conditions = [] } = await this.status();
    if (lastAttemptedRevision !== revision) return undefined;
    return conditions.find((condition) => condition.type === type);
  }

  /** How many times its controllers have created or changed a Function so far, by their log. */
  get changes(): number {
    return this.programs.output.match(/"Function\/[^"]+":"(?:created|configured)"/g)?.length ?? 0;
  }

  #next(): string {
    return `request-${++this.#requests}`;
  }
}
