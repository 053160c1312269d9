/** Spry installed on a real cluster of our own: images from this checkout, `spry install`, and a Pod that calls Functions. */
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { createRegistry } from "@spry/image";
import { onlyLogin } from "../../packages/image/src/testing/only-login.ts";
import { type KubeClient, type KubeObject, type Resource } from "@spry/kube";
import { type Function } from "@spry/function";
import { read } from "../../tools/real-apiserver/cluster.ts";
import { layout } from "../../tools/real-apiserver/components.ts";
import { command } from "../../tools/real-apiserver/node/command.ts";
import { inNamespaces } from "../../tools/real-apiserver/node/namespaces.ts";
import { allowPlainRegistry } from "../../tools/real-apiserver/node/programs.ts";
import { type NodeProgram } from "../../tools/real-apiserver/node/programs.ts";
import { losePower, restartProgram } from "../../tools/real-apiserver/node/restart.ts";
import { answerOf, inClient, startClient } from "./client-pod.ts";
import { inventory } from "./cluster-inventory.ts";
import { root, run } from "./platform.ts";
import { enforcePolicies, type PolicyAgent } from "./policy-agent.ts";
import { RealCluster, whyNoCluster } from "./real-cluster.ts";
import { untilRunning } from "./until-running.ts";

/** Why none can be here; undefined when one can. */
export function whyNoInstallation(): string | undefined {
  if (process.env["KUBECONFIG"])
    return "the cluster of KUBECONFIG is not ours to break: without it there is one of our own";
  return whyNoCluster({ node: true });
}

interface Finished {
  code: number;
  stdout: string;
  stderr: string;
}

export class InstalledCluster {
  readonly #cluster = new RealCluster();
  readonly #scratch = mkdtempSync(path.join(tmpdir(), "installed-"));
  readonly #servers: { close(): unknown }[] = [];
  /** By the names of `npm run images`. */
  images: Record<string, string> = {};
  /** `host:port` of the registry that those are in. */
  imageRegistry = "";

  /**
   * The cluster and the images, but nothing installed. `moreImages` are made besides the usual ones; with a `login` the
   * registry that Spry's own images are in gives them to no other client.
   */
  async start(
    options: {
      moreImages?: readonly string[];
      login?: { username: string; password: string };
    } = {},
  ): Promise<void> {
    const { moreImages = [], login } = options;
    await this.#cluster.start({ node: true });
    const registry = createRegistry({
      dir: path.join(this.#scratch, "registry"),
      ...(login ? { logins: onlyLogin(login) } : {}),
    });
    const server = await registry.listen({ host: this.hostAddress, port: 0 });
    this.#servers.push(server, registry);
    const host = `${this.hostAddress}:${server.port}`;
    this.imageRegistry = host;
    this.allowPlainRegistry(host);
    const config = this.#dockerConfig;
    mkdirSync(config);
    writeFileSync(path.join(config, "config.json"), dockerConfig(login ? { [host]: login } : {}));
    this.images = await this.makeImages(root, this.#imageValues, moreImages);
    const more = {
      replicas: 2,
      plainRegistries: [host],
      registry: { storage: { storageClassName: "of-the-test", size: "2Gi" } },
    };
    await this.#offerVolumes("of-the-test", 5);
    writeFileSync(this.#values, JSON.stringify(more));
  }

  /** Of a checkout of Spry, into the test's registry; the file is for `--values`. */
  async makeImages(
    checkout: string,
    valuesFile: string,
    more: readonly string[] = [],
  ): Promise<Record<string, string>> {
    const program = path.join(checkout, "tools/images/main.ts");
    const only = `--only=${["controller", "registry", "gateway", "builder", "nodejs24", ...more].join()}`;
    const to = [`--to=${this.imageRegistry}`, "--plain", `--values=${valuesFile}`];
    const credentials = `DOCKER_CONFIG=${this.#dockerConfig}`;
    const made = await run("env", [credentials, process.execPath, program, ...to, only]);
    if (made.code !== 0) throw new Error(`making images: ${made.stderr}`);
    return (JSON.parse(readFileSync(valuesFile, "utf8")) as typeof this).images;
  }

  async stop(): Promise<void> {
    for (const server of this.#servers.toReversed()) await server.close();
    await this.#cluster.stop();
    rmSync(this.#scratch, { recursive: true, force: true });
  }

  get client(): KubeClient {
    return this.#cluster.client;
  }

  /** Of this machine, as Pods see it. */
  get hostAddress(): string {
    return this.#cluster.own?.node?.network.hostAddress ?? "";
  }

  /** Of the node, as this machine sees it: NodePorts are there. */
  get nodeAddress(): string {
    return this.#cluster.own?.node?.network.address ?? "";
  }

  /** From now on the node pulls from this registry (`host:port`) without TLS. */
  allowPlainRegistry(host: string): void {
    allowPlainRegistry(this.#dir, host);
  }

  get kubeconfig(): string {
    return this.#cluster.own?.kubeconfig ?? "";
  }

  /** Files for `spry install --values`. */
  get values(): string[] {
    return [this.#imageValues, this.#values];
  }

  spry(...args: string[]): Promise<Finished> {
    return this.#spryOf(root, args);
  }

  /** The command with a kubeconfig of the caller's. */
  spryWith(kubeconfig: string, args: string[], input?: string): Promise<Finished> {
    return run(
      process.execPath,
      [path.join(root, "packages/cli/bin/spry.mjs"), "--kubeconfig", kubeconfig, ...args],
      input,
    );
  }

  #spryOf(checkout: string, args: string[]): Promise<Finished> {
    const main = path.join(checkout, "packages/cli/bin/spry.mjs");
    return run(process.execPath, [main, "--kubeconfig", this.kubeconfig, ...args]);
  }

  install(...more: string[]): Promise<Finished> {
    const values = this.values.flatMap((file) => ["--values", file]);
    return this.spry("install", "--timeout", "180", ...values, ...more);
  }

  /** The same with the images of another file, and by another version's own command. */
  installVersion(checkout: string, images: string): Promise<Finished> {
    const values = ["--values", images, "--values", this.#values];
    return this.#spryOf(checkout, ["install", "--timeout", "180", ...values]);
  }

  /** For files of the test; removed with the cluster. */
  get scratch(): string {
    return this.#scratch;
  }

  /** Directory of the volumes, which the registry's claim is one of. */
  get volumes(): string {
    return path.join(this.#scratch, "volumes");
  }

  /** What is `/var` on the node. */
  get nodeFiles(): string {
    return path.join(this.#dir, "var");
  }

  /** Makes a server of this machine's loopback reachable from Pods; its address there. */
  async share(port: number): Promise<string> {
    const server: Server = createServer((socket) => {
      const inner = connect(port, "127.0.0.1");
      socket.pipe(inner).pipe(socket);
      for (const each of [socket, inner])
        each.on("error", () => (socket.destroy(), inner.destroy()));
    });
    await new Promise<void>((resolve) => server.listen(0, this.hostAddress, resolve));
    this.#servers.push(server);
    return `${this.hostAddress}:${(server.address() as AddressInfo).port}`;
  }

  /** Volumes for claims of the class, as an operator who runs a cluster by hand makes them; one for each installation. */
  async #offerVolumes(storageClassName: string, count: number): Promise<void> {
    for (let index = 0; index < count; index++) {
      const directory = path.join(this.volumes, String(index));
      mkdirSync(directory, { recursive: true });
      chownSync(directory, 1000, 1000);
      const spec = {
        storageClassName,
        capacity: { storage: "2Gi" },
        accessModes: ["ReadWriteOnce"],
        persistentVolumeReclaimPolicy: "Retain",
        hostPath: { path: directory },
      };
      const metadata = { name: `volume-${index}` };
      await this.client.create(persistentVolumes, { metadata, spec });
    }
  }

  /** Until the newest generation runs; throws with its conditions when that takes too long. */
  untilRunning(namespace: string, name: string, timeoutMs?: number): Promise<Function> {
    return untilRunning(this.client, { namespace, name }, timeoutMs);
  }

  /** A Pod that has Node.js, to call Functions from as their users do. */
  startClient(namespace: string, options: { serviceAccountName?: string } = {}): Promise<void> {
    return startClient(this, namespace, options);
  }

  /** What a script prints in the client's Pod. */
  inClient(namespace: string, script: string): Promise<string> {
    return inClient(this, namespace, script);
  }

  /** A Function's answer by its Service's name, from the client's Pod. */
  call(namespace: string, name: string): Promise<string> {
    return answerOf(this, namespace, name);
  }

  /** From now on NetworkPolicies count on the node, which by itself knows none; says what went wrong with that. */
  async enforcePolicies(): Promise<PolicyAgent> {
    const first = read(this.#dir)?.processes[0];
    if (!first) throw new Error(`the node of ${this.#dir}: there is none`);
    const agent = await enforcePolicies(this.client, {
      scratch: this.#scratch,
      inNode: (file, args) => command(...inNamespaces(first, file, args)),
    });
    this.#servers.push({ close: () => agent.stop() });
    return agent;
  }

  /** Kills a program of the node, and starts it again when `whileGone` is over. */
  restartOnNode(name: NodeProgram, whileGone: () => Promise<void>): Promise<void> {
    return restartProgram(this.#dir, name, { whileGone, signal: new AbortController().signal });
  }

  /** Takes the power from the node, with all its Pods, and gives it back when `whileGone` is over. */
  losePower(whileGone: () => Promise<void>): Promise<void> {
    return losePower(this.#dir, { whileGone, signal: new AbortController().signal });
  }

  /** What a ServiceAccount has asked the API server for, by the audit log. */
  asked(account: string): AuditEvent[] {
    const text = readFileSync(layout(this.#dir).auditLog, "utf8");
    // The last line may be just being written.
    const lines = text.split("\n").slice(0, -1);
    const all = lines.map((line) => JSON.parse(line) as AuditEvent);
    return all.filter(({ user }) => user.username === `system:serviceaccount:${account}`);
  }

  inventory(): Promise<string[]> {
    return inventory(this.client);
  }

  get #dir(): string {
    return path.dirname(this.kubeconfig);
  }
  get #dockerConfig(): string {
    return path.join(this.#scratch, "docker");
  }
  get #imageValues(): string {
    return path.join(this.#scratch, "images.json");
  }
  get #values(): string {
    return path.join(this.#scratch, "values.json");
  }
}

/** Of docker: the login at each registry. */
export function dockerConfig(
  logins: Record<string, { username: string; password: string }>,
): string {
  const auths = Object.entries(logins).map(([host, { username, password }]) => {
    return [host, { auth: Buffer.from(`${username}:${password}`).toString("base64") }];
  });
  return JSON.stringify({ auths: Object.fromEntries(auths) });
}

export interface AuditEvent {
  user: { username: string };
  verb: string;
  objectRef?: { apiGroup?: string; resource?: string; subresource?: string; namespace?: string };
  responseStatus?: { code: number };
  annotations?: Record<string, string>;
}

const persistentVolumes: Resource<KubeObject & { spec: object }> = {
  group: "",
  version: "v1",
  kind: "PersistentVolume",
  plural: "persistentvolumes",
  namespaced: false,
};
