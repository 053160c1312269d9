/** Knative's own tests, unmodified, against a platform: their images in a registry, their namespaces, one test at a time. */
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
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
import {
  knativeImages,
  knativeProgram,
  type KnativeSuite,
} from "../../tools/foreign-tools/knative.ts";
import { type Platform } from "./platform.ts";

/** Where the suite looks for what serves Routes: a Service whose port of nodes leads to the gateway. */
export const ingress = { name: "istio-ingressgateway", namespace: "istio-system" };
const ingressService = (nodePort?: number) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: ingress,
  spec: { type: "NodePort", ports: [{ name: "http2", port: 80, targetPort: 80, nodePort }] },
});

/** What the suite has to know of the platform that it runs on. */
export interface KnativePlace {
  readonly kubeconfig: string;
  k(command: string, input?: string): Promise<string>;
  /** A port of nodes that leads to the gateway whatever the Service says; otherwise Kubernetes chooses one. */
  readonly nodePort?: number;
  /** Where that port is. */
  readonly nodeAddress: string;
  /** `host:port` of a registry that everybody may write to and nodes pull from without TLS; otherwise one is started on loopback. */
  readonly registry?: string;
  /** Where it is started on loopback; the platform has to be allowed to pull from there. */
  readonly registryPort?: number;
}

/** The port of nodes is the gateway's own: nothing forwards NodePorts there. */
export const onMachine = (platform: Platform): KnativePlace => ({
  get kubeconfig() {
    return platform.kubeconfig;
  },
  k: (command, input) => platform.k(command, input),
  get nodePort() {
    return Number(platform.gateway.port);
  },
  nodeAddress: "127.0.0.1",
});

/** A free port of the range that a Service of type NodePort may name: the tests of WebSockets ask such a one. */
export async function freeNodePort(): Promise<number> {
  for (;;) {
    const port = 30_000 + Math.floor(Math.random() * 2_768);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once("error", () => resolve(false));
      server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}

export interface KnativeTest {
  program: KnativeSuite;
  /** Without `Test`. */
  name: string;
  /** Flags of the suite besides those that it always gets. */
  flags?: string[];
}

export class KnativeTests {
  readonly #place: KnativePlace;
  readonly #scratch = mkdtempSync(path.join(tmpdir(), "spry-knative-"));
  #images = "";
  #close = async () => {};

  constructor(place: KnativePlace) {
    this.#place = place;
  }

  /** Of its registry, where the suite's images are once `prepare` has ended: `<images>/helloworld:latest`. */
  get images(): string {
    return this.#images;
  }

  /** What `test/config` of the suite installs, and its images. */
  async prepare(): Promise<void> {
    this.#images = await this.#pushImages();
    const namespaces = ["serving-tests", "serving-tests-alt", "tls", "rq-test", "istio-system"];
    const named = (kind: string, name: string, more: object, namespace?: string) => ({
      apiVersion: "v1",
      kind,
      metadata: { name, ...(namespace ? { namespace } : {}) },
      ...more,
    });
    const items = [
      ...namespaces.map((name) => named("Namespace", name, {})),
      named(
        "ConfigMap",
        "conformance-test-configmap",
        { data: { testKey: "testValue" } },
        "serving-tests",
      ),
      named(
        "Secret",
        "conformance-test-secret",
        { stringData: { testKey: "testValue" } },
        "serving-tests",
      ),
      ingressService(this.#place.nodePort),
    ];
    await this.#place.k("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items }));
  }

  /** One of the ConfigMaps in `knative-serving`. */
  async configure(name: string, data: Record<string, string>): Promise<void> {
    const metadata = { name, namespace: "knative-serving" };
    const config = { apiVersion: "v1", kind: "ConfigMap", metadata, data };
    await this.#place.k("apply -f -", JSON.stringify(config));
  }

  async close(): Promise<void> {
    await this.#close();
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  /** The log of one that fails is the error. */
  async run({ program, name, flags = [] }: KnativeTest, timeoutMs: number): Promise<void> {
    const output = await new Promise<string>((resolve, reject) => {
      execFile(
        knativeProgram(program),
        [
          `-test.run=^Test${name}$`,
          "-test.v",
          `-test.timeout=${timeoutMs / 1000 - 10}s`,
          `-kubeconfig=${this.#place.kubeconfig}`,
          `-dockerrepo=${this.#images}`,
          "-imagetemplate={{.Repository}}/{{.Name}}:{{.Tag}}",
          "-tag=latest",
          `-ingressendpoint=${this.#place.nodeAddress}`,
          "-disable-logstream",
          "-enable-alpha",
          "-enable-beta",
          ...flags,
        ],
        {
          env: {
            PATH: process.env["PATH"],
            HOME: this.#scratch,
            SYSTEM_NAMESPACE: "knative-serving",
          },
          cwd: this.#scratch,
          maxBuffer: 64 * 2 ** 20,
        },
        (error, stdout, stderr) => {
          const log = `${stdout}${stderr}`;
          if (error) reject(new Error(log.slice(-8_000)));
          else resolve(log);
        },
      );
    });
    if (!new RegExp(`^--- PASS: Test${name} `, "m").test(output))
      throw new Error(`Test${name} was not run, or skipped:\n${output.slice(-2_000)}`);
  }

  /** As `ko` makes them: the program, and of its base the folder that everybody may write to. */
  async #pushImages(): Promise<string> {
    const host = this.#place.registry ?? (await this.#startRegistry());
    const client = new RegistryClient({ resolve: () => ({ url: `http://${host}` }) });
    for (const program of knativeImages) {
      const name = path.basename(program);
      const content = readFileSync(knativeProgram(`images/${program}`));
      const layer = await createLayer([
        { path: `ko-app/${name}`, content, mode: 0o755 },
        { path: "tmp", folder: true, mode: 0o1777 },
      ]);
      const config = { Entrypoint: [`/ko-app/${name}`], User: "65532" };
      const image = assembleImage({ layers: [layer], config });
      await pushImage(client, image, parseImageName(`${host}/${name}:latest`));
    }
    return host;
  }

  async #startRegistry(): Promise<string> {
    const registry = createRegistry({ dir: path.join(this.#scratch, "registry") });
    const server = await registry.listen({
      host: "127.0.0.1",
      port: this.#place.registryPort ?? 0,
    });
    this.#close = () => server.close().then(() => registry.close());
    return `127.0.0.1:${server.port}`;
  }
}
