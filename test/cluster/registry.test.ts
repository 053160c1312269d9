/** Registries on a real cluster: a login for everything, packages from private ones, another registry at run time, room. */
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { type Serverless, serverlesses } from "@spry/controller";
import { type Function, functions, names } from "@spry/function";
import { getCondition, type Namespace, resources, type Secret } from "@spry/kube";
import { createLogins } from "@spry/image";
import { findPython } from "@spry/machine";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registryKeyName } from "../../packages/cli/src/in-cluster/registry-key.ts";
import { registryName, registryRules } from "../../packages/cli/src/install/registry.ts";
import { startNpmRegistry } from "../../packages/image/src/testing/npm-registry.ts";
import { startPythonIndex } from "../../packages/image/src/testing/python-index.ts";
import {
  type DockerRegistry,
  hasDockerRegistry,
  startDockerRegistry,
} from "../support/docker-registry.ts";
import { dockerConfig, InstalledCluster, whyNoInstallation } from "../support/installed-cluster.ts";
import { functionManifest, pause } from "../support/platform.ts";
import { rightOf, rightsIn, rightsUsed } from "../support/rights.ts";

const reason =
  whyNoInstallation() ?? (hasDockerRegistry ? undefined : "docker-registry is not installed");
const hasPython = !reason && (await findPython("3.12")) !== undefined;
const cluster = new InstalledCluster();
const scratch = mkdtempSync(path.join(tmpdir(), "registry-test-"));
const system = "kyma-system";
const namespace = `shop-${randomBytes(3).toString("hex")}`;
const patience = { timeout: 90_000, interval: 200 };
/** Of Spry's own images. */
const puller = { username: "puller", password: "of images" };
/** Of the registry that takes over. */
const user = { username: "somebody", password: "a secret" };

const encode = (text: string) => Buffer.from(text).toString("base64");
const decode = (text = "") => Buffer.from(text, "base64").toString();
const encoded = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([key, value]) => [key, encode(value)]));
function manifest(name: string, source: string, spec: Record<string, unknown> = {}): Function {
  return JSON.parse(functionManifest(name, source, spec, { namespace })) as Function;
}
const answering = (text: string) =>
  `module.exports = { main: async () => ${JSON.stringify(text)} };`;
const apply = (fn: Function) => cluster.client.apply(functions, fn, { fieldManager: "test" });
const configuration = () =>
  cluster.client.get<Serverless>(serverlesses, { namespace: system, name: "default" });
const createSecret = (where: string, name: string, secret: Omit<Secret, "metadata">) =>
  cluster.client.create<Secret>(resources.secrets, {
    metadata: { namespace: where, name },
    ...secret,
  });

function install(values: object) {
  const file = path.join(scratch, "values.json");
  writeFileSync(file, JSON.stringify(values));
  return cluster.install("--values", file);
}

async function imageOf(name: string, where = namespace): Promise<string> {
  const { spec } = await cluster.client.get(resources.deployments, { namespace: where, name });
  return spec?.template.spec?.containers[0]?.image ?? "";
}

describe.skipIf(reason !== undefined)(`registries${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let other: DockerRegistry;
  let otherHost: string;
  beforeAll(async () => {
    const moreImages = hasPython ? ["python312", "builder-python312"] : [];
    await cluster.start({ moreImages, login: puller });
    other = await startDockerRegistry(user);
    otherHost = await cluster.share(Number(other.host.split(":")[1]));
    cluster.allowPlainRegistry(otherHost);
  }, 400_000);
  afterAll(async () => {
    await cluster.stop();
    await other?.stop();
    rmSync(scratch, { recursive: true, force: true });
  }, 60_000);

  const plainRegistries = () => [cluster.imageRegistry, otherHost];
  /** Its user, and where this machine reaches it. */
  const ownRegistry = async () => {
    const target = { namespace: system, name: registryKeyName };
    const { data } = await cluster.client.get(resources.secrets, target);
    const { username, password } = createLogins(decode(data?.["key"])).platform();
    const pair = `${username}:${password}`;
    const url = `http://${cluster.nodeAddress}:32137`;
    return { url, headers: { authorization: `Basic ${encode(pair)}` } };
  };

  test("Spry's own images may be behind a login", async () => {
    await cluster.client.create<Namespace>(resources.namespaces, { metadata: { name: system } });
    await createSecret(system, "images", {
      type: "kubernetes.io/dockerconfigjson",
      data: encoded({ ".dockerconfigjson": dockerConfig({ [cluster.imageRegistry]: puller }) }),
    });
    const { code, stderr } = await install({
      imagePullSecrets: ["images"],
      plainRegistries: plainRegistries(),
      registry: {
        storage: { size: "300Mi" },
        cleaning: { intervalSeconds: 2, graceSeconds: 5, previousImages: 1 },
      },
    });
    expect(stderr).toContain(`Spry is installed in ${system}`);
    expect(code).toBe(0);
    await expect.poll(async () => (await configuration()).status?.state, patience).toBe("Ready");
    await cluster.client.create<Namespace>(resources.namespaces, {
      metadata: {
        name: namespace,
        labels: { "pod-security.kubernetes.io/enforce": "restricted" },
      },
    });
    await apply(manifest("inline", answering("first")));
    await cluster.untilRunning(namespace, "inline");
    // It has the Secrets that every namespace gets.
    await cluster.startClient(namespace, { serviceAccountName: names.serviceAccount });
    expect(await cluster.call(namespace, "inline")).toBe("first");
  }, 300_000);

  test("packages for npm and pip come from registries that want a login", async () => {
    const npm = await startNpmRegistry({ token: "npm-t0ken" });
    const npmHost = await cluster.share(Number(npm.address.split(":")[1]));
    const pip = await startPythonIndex({ login: "me:pip-t0ken" });
    const pipHost = await cluster.share(Number(pip.address.split(":")[1]));
    const pipConfig = [
      "[global]",
      `index-url = http://me:pip-t0ken@${pipHost}/simple`,
      `trusted-host = ${pipHost.split(":")[0]}`,
    ];
    await createSecret(namespace, names.packageRegistrySecret, {
      data: encoded({
        ".npmrc": `registry=http://${npmHost}/\n//${npmHost}/:_authToken=npm-t0ken\n`,
        "pip.conf": `${pipConfig.join("\n")}\n`,
      }),
    });
    const node = `module.exports = { main: () => require("greeting") };`;
    const dependencies = JSON.stringify({ dependencies: { greeting: "1.2.3" } });
    await apply(manifest("npm", node, { dependencies }));
    if (hasPython) {
      const python = "import greeting\ndef main(event, context):\n    return greeting.greet()\n";
      await apply(
        manifest("pip", python, { runtime: "python312", dependencies: "greeting==1.2.3\n" }),
      );
    }
    for (const name of hasPython ? ["npm", "pip"] : ["npm"]) {
      await cluster.untilRunning(namespace, name);
      expect(await cluster.call(namespace, name)).toBe("hello");
    }
    const { items } = await cluster.client.list(functions, { namespace });
    expect(JSON.stringify(items)).not.toContain("t0ken");
  }, 300_000);

  test("what belonged to a Function goes with it, and what others need stays", async () => {
    const { url, headers } = await ownRegistry();
    const tags = async (name: string) => {
      const answer = await fetch(`${url}/v2/${namespace}/${name}/tags/list`, { headers });
      return answer.ok ? ((await answer.json()) as { tags: string[] }).tags.length : 0;
    };
    expect(await tags("npm")).toBeGreaterThan(0);
    for (const name of hasPython ? ["npm", "pip"] : ["npm"])
      await cluster.client.delete(functions, { namespace, name });
    await expect.poll(() => tags("npm"), patience).toBe(0);
    expect(await tags("inline")).toBeGreaterThan(0);
    const metrics = () =>
      cluster.inClient(
        namespace,
        `fetch("http://${registryName}-metrics.${system}.svc.cluster.local:5001/metrics").then((r) => r.text()).then((t) => console.log(t))`,
      );
    // They are counted when the whole cleaning is over.
    await expect
      .poll(metrics, patience)
      .toMatch(/^spry_registry_cleaned_manifests_total [1-9]\d*$/m);
    expect(await metrics()).toMatch(/^spry_registry_cleanings_total\{result="error"\} 0$/m);
  });

  test("a namespace's login is good for its own images, and deletes none", async () => {
    const { url } = await ownRegistry();
    const target = { namespace, name: names.registrySecret };
    const { data } = await cluster.client.get(resources.secrets, target);
    const pair = `${decode(data?.["username"])}:${decode(data?.["password"])}`;
    const headers = { authorization: `Basic ${encode(pair)}` };
    const status = async (method: string, where: string) =>
      (await fetch(`${url}/v2/${where}`, { method, headers })).status;
    const digest = (await imageOf("inline")).split("@")[1];
    expect(await status("GET", `${namespace}/inline/manifests/${digest}`)).toBe(200);
    expect(await status("DELETE", `${namespace}/inline/manifests/${digest}`)).toBe(403);
    for (const [method, where] of [
      ["GET", `${system}/inline/manifests/${digest}`],
      ["POST", `${namespace}-other/inline/blobs/uploads/`],
      ["GET", `${namespace}-inline/manifests/${digest}`],
    ] as const)
      expect(`${where} ${await status(method, where)}`).toBe(`${where} 403`);
  });

  const label = "serverless.kyma-project.io";
  /** By the contract, in the base namespace for the whole cluster, elsewhere for that namespace. */
  const choose = async (where: string, labels: Record<string, string>) => {
    const metadata = {
      namespace: where,
      name: names.remoteRegistrySecret,
      labels: { [`${label}/remote-registry`]: "config", ...labels },
    };
    await cluster.client.create<Secret>(resources.secrets, {
      metadata,
      type: "kubernetes.io/dockerconfigjson",
      data: encoded({ ...user, serverAddress: otherHost, registryAddress: otherHost }),
    });
    return metadata;
  };
  /** Runs from there. */
  const settled = async (name: string, address: string) => {
    const repository = address === otherHost ? `${namespace}-${name}` : `${namespace}/${name}`;
    await expect
      .poll(() => imageOf(name), patience)
      .toMatch(new RegExp(`^${address}/${repository}@sha256:`));
    await cluster.untilRunning(namespace, name);
  };

  test("another registry takes over at run time and gives back, without a request lost", async () => {
    await apply(manifest("second", answering("too")));
    await cluster.untilRunning(namespace, "second");
    const load = loadUntil("over");
    const metadata = await choose(system, { [`${label}/config`]: "credentials" });
    for (const name of ["inline", "second"]) await settled(name, otherHost);
    await cluster.client.delete(resources.secrets, metadata);
    for (const name of ["inline", "second"]) await settled(name, "localhost:32137");
    await apply(manifest("inline", answering("over")));
    const { ok, bad } = await load;
    expect(bad).toEqual([]);
    expect(ok).toBeGreaterThan(50);
  }, 400_000);

  test("a namespace may have a registry of its own, with its own login, and no other namespace has it", async () => {
    const beside = `${namespace}-beside`;
    await cluster.client.create<Namespace>(resources.namespaces, { metadata: { name: beside } });
    const metadata = await choose(namespace, {});
    // An image that no node has yet: without the login it cannot be pulled.
    await apply(manifest("second", answering("of its own")));
    await settled("second", otherHost);
    // The code before may have been built anew for this registry, too.
    await expect.poll(() => cluster.call(namespace, "second"), patience).toBe("of its own");
    const neighbour = manifest("neighbour", answering("as ever"));
    await apply({ ...neighbour, metadata: { ...neighbour.metadata, namespace: beside } });
    await cluster.untilRunning(beside, "neighbour");
    expect(await imageOf("neighbour", beside)).toMatch(/^localhost:32137\//);
    const { items } = await cluster.client.list(resources.secrets, { namespace: beside });
    expect(items.map((secret) => secret.metadata.name)).not.toContain(metadata.name);
    await cluster.client.delete(resources.secrets, metadata);
    await settled("second", "localhost:32137");
  }, 400_000);

  test("a full registry is reported in the Function's status; what is not needed goes, and the build goes on", async () => {
    const { url, headers } = await ownRegistry();
    const room = async () => {
      const metrics = await (await fetch(`${url}/metrics`, { headers })).text();
      const gauge = (name: string) =>
        Number(new RegExp(`^spry_registry_${name} (\\d+)$`, "m").exec(metrics)?.[1]);
      return gauge("storage_quota_bytes") - gauge("storage_bytes") - gauge("upload_bytes");
    };
    const opened = await fetch(`${url}/v2/my/own/blobs/uploads/`, { method: "POST", headers });
    const upload = new URL(opened.headers.get("location") ?? "", url);
    const content = createHash("sha256");
    // What can be spared goes meanwhile, until there is nothing of that left.
    for (let quiet = 0; quiet < 10; quiet++) {
      const left = await room();
      if (left > 1000) {
        quiet = 0;
        const body = new Uint8Array(left - 100);
        content.update(body);
        expect((await fetch(upload, { method: "PATCH", headers, body })).status).toBe(202);
      }
      await pause(1000);
    }
    await apply(manifest("late", answering("there is room")));
    const build = async () => {
      const { status } = await cluster.client.get(functions, { namespace, name: "late" });
      const condition = getCondition(status?.conditions, "BuildReady");
      return `${condition?.status} ${condition?.reason} ${condition?.message}`;
    };
    await expect
      .poll(build, patience)
      .toMatch(/^False JobFailed .*DENIED: the registry is full: .*delete Functions/s);
    // It ends, as a blob that nothing refers to.
    const digest = `sha256:${content.digest("hex")}`;
    upload.searchParams.set("digest", digest);
    expect((await fetch(upload, { method: "PUT", headers })).status).toBe(201);
    await cluster.untilRunning(namespace, "late");
    expect(await cluster.call(namespace, "late")).toBe("there is room");
    expect(
      (await fetch(`${url}/v2/my/own/blobs/${digest}`, { method: "HEAD", headers })).status,
    ).toBe(404);
  }, 300_000);

  test("the registry's role is what the registry asks for: no less, and no more", async () => {
    const asked = cluster.asked(`${system}:${registryName}`);
    const refused = asked.filter(({ responseStatus }) => responseStatus?.code === 403);
    expect(refused.map(rightOf)).toEqual([]);
    expect(new Set(asked.flatMap(rightsUsed))).toEqual(new Set(registryRules.flatMap(rightsIn)));
  });

  test("an installation may begin with an external registry, and none of its own", async () => {
    expect((await cluster.spry("uninstall", "--functions", "delete")).code).toBe(0);
    await createSecret(system, "mine", {
      data: encoded({ ...user, serverAddress: otherHost, registryAddress: otherHost }),
    });
    const { code } = await install({
      imagePullSecrets: ["images"],
      plainRegistries: plainRegistries(),
      registry: { enabled: false },
      serverless: { dockerRegistry: { enableInternal: false, secretName: "mine" } },
    });
    expect(code).toBe(0);
    const shown = async () => {
      const { status } = await configuration();
      return `${status?.state} ${status?.dockerRegistry}`;
    };
    await expect.poll(shown, patience).toBe(`Ready ${otherHost}`);
    await apply(manifest("inline", answering("elsewhere")));
    await cluster.untilRunning(namespace, "inline");
    expect(await imageOf("inline")).toMatch(new RegExp(`^${otherHost}/`));
    // kube-proxy may hear late of what has ended: the Function of the same name that was deleted.
    await expect.poll(() => cluster.call(namespace, "inline"), patience).toBe("elsewhere");
  }, 300_000);
});

/** A caller in the client's Pod, one request after the other, until it gets this answer. */
async function loadUntil(text: string): Promise<{ ok: number; bad: string[] }> {
  const url = `http://inline.${namespace}.svc.cluster.local/`;
  const script = `(async () => {
    let ok = 0, bad = [], last;
    while (last !== ${JSON.stringify(text)}) {
      try {
        const answer = await fetch(${JSON.stringify(url)});
        last = await answer.text();
        if (answer.status === 200) ok++; else bad.push(answer.status + " " + last);
      } catch (error) { bad.push(String(error.cause ?? error)); }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    console.log(JSON.stringify({ ok, bad }));
  })();`;
  return JSON.parse(await cluster.inClient(namespace, script)) as { ok: number; bad: string[] };
}
