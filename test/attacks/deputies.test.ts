/**
 * A hostile tenant with `edit` in a namespace names programs of the machine wherever it can name a server, on a running platform: nothing of
 * the platform may call them for it, nor show what they say. On both sandboxes.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo } from "node:net";
import { networkInterfaces } from "node:os";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasRuntime } from "../support/host-address.ts";
import { functionManifest, Platform } from "../support/platform.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const secret = "word-of-the-machine";
const tenant = "mallory";
const other = "alice";

const own = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .map(({ address }) => (address.includes(":") ? `[${address.replace(/%.*/, "")}]` : address));
const hosts = [
  ...new Set(["127.0.0.1", "localhost", "a.localhost", "127.8.9.1", "[::1]", "0x7f.0.0.1", ...own]),
  ..."127.1 2130706433 0177.0.0.1 0.0.0.0 169.254.169.254 [::ffff:7f00:1] [64:ff9b::7f00:1]".split(" "),
]; // prettier-ignore

describe.each([
  { sandbox: "process", why: undefined },
  { sandbox: "oci", why: isRoot && hasRuntime() ? undefined : "needs root and runc" },
])("in the sandbox $sandbox", ({ sandbox, why }) => {
  if (why !== undefined) return test.skip(`(skipped: ${why})`);

  let platform: Platform;
  let trap: Server;
  /** A registry that the operator allows, and that the tenant has made answer as it likes. */
  let hostile: Server;
  let trapPort: number;
  let hostilePort: number;
  /** Peers of the trap's connections. */
  const caught: string[] = [];
  const asTenant = (args: string, input?: string) =>
    platform.kubectl([`--as=system:serviceaccount:${tenant}:tenant`, ...args.split(" ")], input);
  const apply = async (...items: object[]) => {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items });
    const { code, stderr } = await asTenant("apply -f -", list);
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) as string });
  };

  beforeAll(async () => {
    trap = createServer((_, response) => response.end(secret));
    trap.on("connection", (socket) => caught.push(String(socket.remoteAddress)));
    await once(trap.listen(0), "listening");
    trapPort = (trap.address() as AddressInfo).port;
    hostilePort = await freePort();
    hostile = createServer(({ url = "" }, response) => {
      const [, , how = "", at = "0"] = url.split("/");
      const to = `http://${hosts[Number(at)]}:${trapPort}/shutdown`;
      if (how === "redirect") response.writeHead(307, { location: to }).end();
      else if (how === "realm")
        response.writeHead(401, { "www-authenticate": `Bearer realm="${to}",service="x"` }).end();
      else response.writeHead(403, { "x-word": secret }).end(secret);
    });
    await once(hostile.listen(hostilePort, "127.0.0.1"), "listening");
    platform = new Platform({
      args: ["--no-example", `--sandbox=${sandbox}`, `--allow-loopback=127.0.0.1:${hostilePort}`],
    });
    await platform.start();
    for (const name of [tenant, other]) {
      await platform.k(`create namespace ${name}`);
      await platform.k(`create serviceaccount tenant -n ${name}`);
      for (const role of ["edit", "kyma-functions-edit"])
        await platform.k(
          `create rolebinding ${role} --clusterrole=${role} --serviceaccount=${name}:tenant -n ${name}`,
        );
    }
  }, 200_000);
  afterAll(async () => {
    await platform.remove();
    trap.close();
    hostile.close();
  });

  const pod = (name: string, container: object) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: tenant },
    spec: { terminationGracePeriodSeconds: 0, containers: [{ name: "main", ...container }] },
  });
  const everything = async () =>
    (await platform.k(`get pods,events,functions -n ${tenant} -o json`)) +
    (await platform.k(`get pods -n ${tenant} -o wide`));

  test("images: by every way to write an address, by redirects and by realms", async () => {
    const direct = hosts.map((host, n) => pod(`direct-${n}`, { image: `${host}:${trapPort}/a/b:1` }));
    const indirect = ["redirect", "realm", "body"].flatMap((how) =>
      hosts.map((_, n) =>
        pod(`${how}-${n}`, { image: `127.0.0.1:${hostilePort}/${how}/${n}:1` }),
      ),
    );
    await apply(...direct, ...indirect);
    // An address of the machine's may be gone by now.
    const isCertain = (name: string) =>
      name.startsWith("direct") && !own.includes(hosts[Number(name.split("-")[1])] ?? "");
    const waiting = async () => {
      const { items } = JSON.parse(await platform.k(`get pods -n ${tenant} -o json`)) as {
        items: {
          metadata: { name: string };
          status: { containerStatuses?: { state: { waiting?: { reason: string; message?: string } } }[] };
        }[];
      };
      return items.map(({ metadata: { name }, status }) => {
        const { reason = "", message = "" } = status.containerStatuses?.[0]?.state.waiting ?? {};
        return { name, reason, message };
      });
    };
    await expect
      .poll(async () => (await waiting()).filter(({ reason }) => reason === "ImagePullBackOff").length, { timeout: 120_000 })
      .toBe(direct.length + indirect.length);
    for (const { name, message } of await waiting())
      if (isCertain(name)) expect(message).toContain("leads to an address that no image is pulled from");
    expect(await everything()).not.toContain(secret);
    expect(caught).toEqual([]);
    await asTenant(`delete pods --all -n ${tenant} --wait=false`);
  }, 200_000); // prettier-ignore

  test("Git, keys of issuers, and tags of Knative Services", async () => {
    const named = [...hosts.entries()];
    const git = named.map(
      ([n, host]) =>
        JSON.parse(
          functionManifest(
            `git-${n}`,
            "",
            {
              source: {
                gitRepository: {
                  url: `http://${host}:${trapPort}/a.git`,
                  baseDir: "/",
                  reference: "main",
                },
              },
            },
            { namespace: tenant },
          ),
        ) as object,
    );
    await apply(...git);
    const rules = named.map(([n, host]) => ({
      apiVersion: "gateway.kyma-project.io/v2",
      kind: "APIRule",
      metadata: { name: `rule-${n}`, namespace: tenant },
      spec: {
        gateway: "kyma-system/kyma-gateway",
        hosts: [`rule-${n}`],
        service: { name: "kubernetes", namespace: "default", port: 443 },
        rules: [
          {
            path: "/*",
            methods: ["GET"],
            service: { name: "open", port: 80 },
            jwt: {
              authentications: [{ issuer: "https://i.example", jwksUri: `http://${host}:${trapPort}/keys` }],
            },
          },
        ],
      },
    })); // prettier-ignore
    await apply(
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "open", namespace: tenant },
        spec: { selector: { a: "b" }, ports: [{ port: 80 }] },
      },
      ...rules,
    );
    // Knative takes no name of an image with brackets.
    const plain = named.filter(([, host]) => !host.startsWith("["));
    const services = plain.map(([n, host]) => ({
      apiVersion: "serving.knative.dev/v1",
      kind: "Service",
      metadata: { name: `tag-${n}`, namespace: tenant },
      spec: { template: { spec: { containers: [{ image: `${host}:${trapPort}/a/b:1` }] } } },
    }));
    await apply(...services);
    // A token that the gateway has to ask the issuer's keys for.
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const token = `${part({ alg: "ES256", kid: "x" })}.${part({ iss: "https://i.example" })}.AAAA`;
    const headers = { authorization: `Bearer ${token}`, "x-forwarded-proto": "https" };
    for (const [n] of named) await platform.call(`rule-${n}`, { path: "/a", headers });
    // Of each Function, two conditions.
    const count = async (kind: string, text: string) =>
      (await platform.k(`get ${kind} -n ${tenant} -o json`)).split(text).length - 1;
    await expect
      .poll(() => count("functions", '"reason": "SourceUpdateFailed"'), { timeout: 60_000 })
      .toBe(2 * git.length);
    // Tags were looked up before there are Pods.
    await expect
      .poll(() => count("pods", '"reason": "ImagePullBackOff"'), { timeout: 60_000 })
      .toBe(services.length);
    expect(await everything()).not.toContain(secret);
    expect(caught).toEqual([]);
  }, 200_000);

  test("Services and their proxies", async () => {
    const external = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "out", namespace: tenant },
      spec: { type: "ExternalName", externalName: "localhost", ports: [{ port: trapPort }] },
    };
    const slice = {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: {
        name: "hand-made",
        namespace: tenant,
        labels: { "kubernetes.io/service-name": "made" },
      },
      addressType: "IPv4",
      endpoints: [{ addresses: ["127.0.0.1"] }],
      ports: [{ port: trapPort }],
    };
    await apply(external);
    expect((await asTenant("apply -f -", JSON.stringify(slice))).stderr).toContain("forbidden");
    const raw = (path: string) =>
      asTenant(`get --raw /api/v1/namespaces/${tenant}/services/${path}/proxy/`);
    for (const path of [`out:${trapPort}`, "out", `http:out:${trapPort}`])
      expect((await raw(path)).stdout).not.toContain(secret);
    expect(caught).toEqual([]);
  }, 60_000);

  test("a Pod of another namespace, which a policy may keep from the tenant", async () => {
    const source = `
      let calls = 0;
      module.exports = { main: ({ extensions: { request } }) => (request.path === "/calls" ? calls : ++calls) + "" };`;
    for (const namespace of [tenant, other])
      await platform.k("apply -f -", functionManifest("quiet", source, {}, { namespace }));
    const callsOf = (namespace: string) =>
      platform.callUntil(`quiet.${namespace}`, ({ status }) => status === 200, { path: "/calls" });
    for (const namespace of [tenant, other]) expect((await callsOf(namespace)).body).toBe("0");
    const addressOf = (namespace: string) =>
      platform.k(
        `get pods -n ${namespace} -l serverless.kyma-project.io/function-name=quiet,serverless.kyma-project.io/resource=deployment -o jsonpath={.items[0].status.podIP}`,
      );
    const [mine, theirs] = [await addressOf(tenant), await addressOf(other)];
    await apply(
      pod("mine", { image: `${mine}:8080/a:1` }),
      pod("theirs", { image: `${theirs}:8080/a:1` }),
    );
    const message = (name: string) =>
      platform.k(
        `get pod ${name} -n ${tenant} -o jsonpath={.status.containerStatuses[0].state.waiting.message}`,
      );
    await expect.poll(() => message("theirs"), { timeout: 30_000 }).toContain("no image is pulled");
    // Its own is in a private network, where Pods have one.
    const ownResult = sandbox === "oci" ? "could not be reached" : "no image is pulled";
    await expect.poll(() => message("mine"), { timeout: 30_000 }).toContain(ownResult);
    expect((await callsOf(other)).body).toBe("0");
    await asTenant(`delete pods mine theirs -n ${tenant} --wait=false`);
  }, 120_000);

  test("probes and hooks with a host, where an administrator lets the namespace have them", async () => {
    await platform.k(
      `label namespace ${tenant} pod-security.kubernetes.io/enforce=privileged --overwrite`,
    );
    const source = `module.exports = { main: () => "here" };`;
    const manifest = functionManifest("runs", source, {}, { namespace: tenant });
    expect((await asTenant("apply -f -", manifest)).stderr).toBe("");
    await platform.callUntil(`runs.${tenant}`, ({ body }) => body === "here");
    const image = (
      await platform.k(
        `get deployment -n ${tenant} runs -o jsonpath={.spec.template.spec.containers[0].image}`,
      )
    ).trim();
    const command = ["node", "-e", "setInterval(() => {}, 1000)"];
    const port = trapPort;
    const plain = hosts.filter((host) => !host.startsWith("["));
    await apply(
      ...plain.map((host, n) =>
        pod(`probe-${n}`, {
          image,
          command,
          readinessProbe: { httpGet: { host, port }, periodSeconds: 1 },
          livenessProbe: { tcpSocket: { host, port }, periodSeconds: 1, failureThreshold: 1_000 },
          lifecycle: { preStop: { httpGet: { host, port } } },
        }),
      ),
    );
    const unhealthy = () =>
      platform.k(`get events -n ${tenant} --field-selector=reason=Unhealthy -o json`);
    await expect
      .poll(unhealthy, { timeout: 90_000 })
      .toContain("is loopback, or this machine's own");
    await asTenant(`delete pods -n ${tenant} ${plain.map((_, n) => `probe-${n}`).join(" ")}`);
    expect(caught).toEqual([]);
    expect(await everything()).not.toContain(secret);
  }, 200_000);
});
