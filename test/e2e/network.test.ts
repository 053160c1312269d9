/** Services called by their names: by Functions, by init containers, by build Pods, by any program. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPython } from "@spry/machine";
import { functionManifest, Platform } from "../support/platform.ts";

const platform = new Platform();
const python = (await findPython("3.12")) ? "3.12" : undefined;

/** Answers with what calling `?url=` gave. */
const caller = `module.exports = { async main(event) {
  const { url, how = "fetch" } = event.extensions.request.query;
  const ways = {
    fetch: async () => (await fetch(url)).text(),
    http: () => new Promise((resolve, reject) => require("node:http").get(url, (answer) => {
      let body = "";
      answer.on("data", (chunk) => (body += chunk)).on("end", () => resolve(body));
    }).on("error", reject)),
    brief: async () => (await fetch(url, { signal: AbortSignal.timeout(1000), headers: { connection: "close" } })).text(),
    lookup: async () => JSON.stringify(await require("node:dns").promises.lookup(new URL(url).hostname)),
  };
  try { return await ways[how](); } catch (error) { return "failed: " + (error.cause?.code ?? error.code ?? error.message); }
} };`;
/** The same in Python. */
const snake = [
  "import socket, urllib.request, asyncio",
  "async def through_asyncio(host):",
  "    reader, writer = await asyncio.open_connection(host, 80)",
  "    writer.write(b'GET / HTTP/1.0\\r\\nHost: x\\r\\n\\r\\n')",
  "    return (await reader.read()).decode().split('\\r\\n\\r\\n')[1]",
  "def main(event, context):",
  "    query = event['extensions']['request'].query",
  "    try:",
  "        if query.get('how') == 'asyncio': return asyncio.run(through_asyncio(query['url']))",
  "        return urllib.request.urlopen(query['url'], timeout=5).read().decode()",
  "    except OSError as error:",
  "        return f'failed: {error}'",
].join("\n");
const answering = (text: string) => `module.exports = { main: () => "${text}" };`;

beforeAll(async () => {
  await platform.start();
  await platform.k("create namespace shop");
  const all = [
    functionManifest("caller", caller),
    functionManifest("near", answering("near")),
    functionManifest("far", answering("far"), {}, { namespace: "shop" }),
    ...(python ? [functionManifest("snake", snake, { runtime: "python312" })] : []),
  ];
  for (const manifest of all) await platform.k("apply -f -", manifest);
  await platform.k("wait --for=condition=Running function --all --timeout=90s");
  await platform.k("wait --for=condition=Running function/far -n shop --timeout=90s");
});
afterAll(() => platform.remove());

async function called(url: string, how = "fetch", host = "caller.default"): Promise<string> {
  const query = new URLSearchParams({ url, how });
  return (await platform.call(host, { path: `/?${query.toString()}` })).body;
}

/** Names become known a moment after their Service. */
const eventuallyCalled = (url: string, how?: string) => expect.poll(() => called(url, how));

describe("a Function calls", () => {
  test.for([
    ["http://far.shop.svc.cluster.local/", "far"],
    ["http://far.shop.svc.cluster.local./", "far"],
    ["http://far.shop.svc/", "far"],
    ["http://far.shop/", "far"],
    ["http://FAR.Shop:80/", "far"],
    ["http://near/", "near"],
    ["http://near.default.svc.cluster.local/", "near"],
    ["http://far/", "failed: ENOTFOUND"],
    ["http://near.shop/", "failed: ENOTFOUND"],
  ])("%s", async ([url = "", answer = ""]) => {
    for (const how of ["fetch", "http"]) await eventuallyCalled(url, how).toBe(answer);
  });

  test("a Service's address, and a port that it does not have", async () => {
    const ip = await platform.k("get service far -n shop -o jsonpath={.spec.clusterIP}");
    await eventuallyCalled(`http://${ip}/`).toBe("far");
    expect(JSON.parse(await called("http://far.shop/", "lookup"))).toEqual({
      address: ip,
      family: 4,
    });
    expect(await called("http://far.shop:81/")).toBe("failed: ECONNREFUSED");
  });

  test("a Service of a Pod's own, with other ports than the Pod's, and without an address", async () => {
    const image = await imageOf("near", "default");
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "echo", labels: { app: "echo" } },
      spec: {
        terminationGracePeriodSeconds: 0,
        imagePullSecrets,
        containers: [
          {
            name: "main",
            image,
            command: ["node", "-e", serving(9000, "echo")],
            ports: [{ name: "web", containerPort: 9000 }],
          },
        ],
      },
    };
    const service = (name: string, spec: object) => ({
      apiVersion: "v1",
      kind: "Service",
      metadata: { name },
      spec: { selector: { app: "echo" }, ...spec },
    });
    const items = [
      pod,
      service("echo", { ports: [{ port: 4321, targetPort: "web" }] }),
      service("echo-pods", { clusterIP: "None", ports: [{ port: 9000 }] }),
      service("echo-alias", {
        selector: undefined,
        type: "ExternalName",
        externalName: "echo.default.svc.cluster.local",
      }),
      service("nobody", { selector: { app: "none" }, ports: [{ port: 80 }] }),
    ];
    await platform.k("apply -f -", items.map((each) => JSON.stringify(each)).join("\n"));
    await platform.k("wait --for=condition=Ready pod/echo --timeout=60s");
    await eventuallyCalled("http://echo:4321/").toBe("echo");
    await eventuallyCalled("http://echo-pods:9000/").toBe("echo");
    await eventuallyCalled("http://echo-alias:4321/").toBe("echo");
    await eventuallyCalled("http://nobody/").toBe("failed: ECONNREFUSED");
    await platform.k("delete pod/echo service/echo");
    await eventuallyCalled("http://echo:4321/").toBe("failed: ENOTFOUND");
  });

  test("from an init container, and from a program that it starts", async () => {
    const image = await imageOf("near", "default");
    const program = `require("node:child_process").execFileSync(process.execPath, ["-e", ${JSON.stringify(fetching("http://near/"))}], { stdio: "inherit" })`;
    const container = (name: string, code: string) => ({
      name,
      image,
      command: ["node", "-e", code],
    });
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "task" },
      spec: {
        imagePullSecrets,
        restartPolicy: "Never",
        initContainers: [container("first", fetching("http://far.shop/"))],
        containers: [container("main", program)],
      },
    };
    await platform.k("apply -f -", JSON.stringify(pod));
    await platform.k("wait --for=jsonpath={.status.phase}=Succeeded pod/task --timeout=60s");
    expect(await platform.k("logs task -c first")).toBe("far\n");
    expect(await platform.k("logs task -c main")).toBe("near\n");
  });

  test("a package registry behind a Service, from its build", async () => {
    // Nothing answers there: the build says what it asked.
    await platform.k("create namespace registry");
    await platform.k(
      "create secret generic serverless-package-registry-config -n registry --from-literal=.npmrc=registry=http://nobody-there.registry:4873/\nfetch-retries=0\n",
    );
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "nobody-there", namespace: "registry" },
      spec: { selector: { app: "none" }, ports: [{ port: 4873 }] },
    };
    await platform.k("apply -f -", JSON.stringify(service));
    const spec = { dependencies: JSON.stringify({ dependencies: { left: "1" } }) };
    const metadata = { namespace: "registry" };
    await platform.k("apply -f -", functionManifest("shop", answering("x"), spec, metadata));
    await expect
      .poll(() => platform.k("describe function shop -n registry"), { timeout: 60_000 })
      .toMatch(/ECONNREFUSED/);
  });

  test("the API server", async () => {
    // Its certificate is signed by an authority that a Function trusts only when told to.
    const answer = await called("https://kubernetes.default.svc/version");
    expect(answer).toMatch(/^failed: (SELF_SIGNED_CERT|UNABLE_TO_VERIFY)/);
  });

  test("other machines", async () => {
    expect(await called("http://no-such-host.invalid/")).toBe("failed: ENOTFOUND");
    expect(await called("http://localhost:1/", "http")).toBe("failed: ECONNREFUSED");
  });
});

describe.skipIf(!python)(python ? "Python" : "skipped: Python 3.12 is not on this machine", () => {
  test("a Function calls others", async () => {
    const bySnake = (url: string, how = "urllib") => called(url, how, "snake.default");
    await expect.poll(() => bySnake("http://far.shop.svc.cluster.local/")).toBe("far");
    expect(await bySnake("http://near/")).toBe("near");
    expect(await bySnake("far.shop.svc", "asyncio")).toBe("far");
    const ip = await platform.k("get service far -n shop -o jsonpath={.spec.clusterIP}");
    expect(await bySnake(`http://${ip}/`)).toBe("far");
    expect(await bySnake("http://far.shop:81/")).toMatch(/refused/);
    expect(await bySnake("http://far/")).toMatch(
      /Name or service not known|No address|failure in name/,
    );
  });
});

describe("NetworkPolicies", () => {
  const policy = (name: string, namespace: string, spec: object) =>
    JSON.stringify({
      apiVersion: "networking.k8s.io/v1",
      kind: "NetworkPolicy",
      metadata: { name, namespace },
      spec: { podSelector: {}, ...spec },
    });
  /** Dropped packets cause no error: only the caller's time limit ends the wait. */
  const isHeard = async (url: string) =>
    (
      await platform.call("caller.default", {
        path: `/?${new URLSearchParams({ url, how: "brief" }).toString()}`,
      })
    ).body === "far";
  const eventually = (heard: boolean) => expect.poll(() => isHeard("http://far.shop/")).toBe(heard);

  test("all callers are blocked, then one namespace and one port admitted; the gateway always is", async () => {
    await eventually(true);
    await platform.k("apply -f -", policy("deny", "shop", {}));
    await eventually(false);
    expect(await platform.call("far.shop")).toMatchObject({ status: 200, body: "far" });
    const from = [
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "default" } } },
    ];
    await platform.k(
      "apply -f -",
      policy("allow", "shop", { ingress: [{ from, ports: [{ port: 9 }] }] }),
    );
    expect(await isHeard("http://far.shop/")).toBe(false);
    await platform.k(
      "apply -f -",
      policy("allow", "shop", { ingress: [{ from, ports: [{ port: 8080 }] }] }),
    );
    await eventually(true);
    await platform.k("delete networkpolicy deny allow -n shop");
  });

  test("a blocked caller fails, from Python, too", async () => {
    await platform.k("apply -f -", policy("deny", "shop", {}));
    await eventually(false);
    if (python) {
      const url = encodeURIComponent("http://far.shop/");
      const { body } = await platform.call("snake.default", { path: `/?url=${url}` });
      expect(body).toMatch(/^failed/);
    }
    await platform.k("delete networkpolicy deny -n shop");
    await eventually(true);
  });

  test("what is served on demand is called by those alone that its policy admits", async () => {
    const lazy = { scaleConfig: { minReplicas: 0, maxReplicas: 1 } };
    const manifest = functionManifest("lazy", answering("far"), lazy, { namespace: "shop" });
    await platform.k("apply -f -", manifest);
    await platform.k("wait --for=condition=Running function/lazy -n shop --timeout=90s");
    // Its Pods have no other host, where a caller would be asked for what it needs.
    for (const host of ["lazy-00001-private.shop", "lazy-00001.shop"])
      expect(await platform.call(host)).toMatchObject({ status: 404 });
    const isLazyHeard = (heard: boolean) =>
      expect.poll(() => isHeard("http://lazy.shop/")).toBe(heard);
    await isLazyHeard(true);
    await platform.k("apply -f -", policy("deny", "shop", {}));
    await isLazyHeard(false);
    // From this machine it is called as ever.
    expect(await platform.call("lazy.shop")).toMatchObject({ status: 200, body: "far" });
    const from = [
      { namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "default" } } },
    ];
    await platform.k("apply -f -", policy("deny", "shop", { ingress: [{ from }] }));
    await isLazyHeard(true);
    await platform.k("delete networkpolicy deny -n shop");
    await platform.k("delete function lazy -n shop");
  });

  test("no call leaves, except to the name server", async () => {
    await platform.k("apply -f -", policy("closed", "default", { policyTypes: ["Egress"] }));
    await eventually(false);
    expect(JSON.parse(await called("http://far.shop/", "lookup"))).toMatchObject({ family: 4 });
    await platform.k("delete networkpolicy closed");
    await eventually(true);
  });
});

/** Who runs an image shows the login of its namespace. */
const imagePullSecrets = [{ name: "serverless-registry-config-default" }];

/** The image of a Function: it has Node.js. */
function imageOf(name: string, namespace: string): Promise<string> {
  return platform.k(
    `get deployment ${name} -n ${namespace} -o jsonpath={.spec.template.spec.containers[0].image}`,
  );
}

function serving(port: number, text: string): string {
  return `require("node:http").createServer((_, answer) => answer.end("${text}")).listen(${port}, process.env.SERVER_HOST ?? "0.0.0.0")`;
}

function fetching(url: string): string {
  return `const again = (left) => fetch("${url}").then((answer) => answer.text()).then(console.log, (error) => left > 0 ? setTimeout(again, 100, left - 1) : console.log(error.cause.code)); again(300);`;
}
