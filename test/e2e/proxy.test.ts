/** What kubectl and browsers reach through the API server: `services/…/proxy`, `pods/…/proxy`, `nodes/…/proxy`. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { request } from "node:https";
import { type AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { functionManifest, Platform } from "../support/platform.ts";

const platform = new Platform();
let proxy: ChildProcess;
let base = "";

const source = `
  module.exports = {
    async main(event) {
      const { request, response } = event.extensions;
      const { url, method, headers } = request;
      if (url.startsWith("/cookie")) {
        response.set("set-cookie", "a=b; Path=/");
        response.set("content-security-policy", "default-src 'self'");
        return "<script>1</script>";
      }
      if (url.startsWith("/away")) return response.redirect(302, "/elsewhere");
      if (url.startsWith("/stream")) {
        response.type("text/event-stream");
        response.write("data: 1\\n\\n");
        await new Promise((resolve) => setTimeout(resolve, 60_000).unref());
        return response.end();
      }
      if (method === "POST") return { size: event.data.length };
      return { url, method, headers };
    },
    websocket(socket) { socket.onmessage = ({ data }) => socket.send("got " + data); },
  };`;
const service = "/api/v1/namespaces/default/services/mirror:80/proxy";

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", functionManifest("mirror", source));
  await platform.k("wait --for=condition=Running function/mirror --timeout=100s");
  proxy = spawn("kubectl", ["--kubeconfig", platform.kubeconfig, "proxy", "--port=0"]);
  const [line] = (await once(proxy.stdout!, "data")) as [Buffer];
  base = `http://${/127\.0\.0\.1:\d+/.exec(line.toString())?.[0]}`;
});
afterAll(async () => {
  proxy.kill();
  await platform.remove();
});

const raw = async (path: string) => JSON.parse(await platform.k(`get --raw ${path}`)) as Seen;
interface Seen {
  url: string;
  headers: Record<string, string>;
}

describe("kubectl get --raw", () => {
  test.each(["mirror:80", "mirror:http", "mirror", "http:mirror:80"])(
    "reaches a Function by its Service as %s",
    async (name) => {
      const path = `/api/v1/namespaces/default/services/${name}/proxy/a/b?c=d`;
      expect((await raw(path)).url).toBe("/a/b?c=d");
    },
  );

  test("reaches a Pod, and reads from the node", async () => {
    const pods = await platform.k(
      "get pods -l serverless.kyma-project.io/resource=deployment -o jsonpath={.items[0].metadata.name}",
    );
    expect((await raw(`/api/v1/namespaces/default/pods/${pods}:8080/proxy/x`)).url).toBe("/x");
    expect(await platform.k("get --raw /api/v1/nodes/spry/proxy/healthz")).toBe("ok");
    expect(await platform.k("get --raw /api/v1/nodes/spry/proxy/stats/summary")).toContain(
      '"podRef"',
    );
  });

  test("reports why something cannot be reached", async () => {
    const why = async (path: string) => (await platform.kubectl(["get", "--raw", path])).stderr;
    const services = "/api/v1/namespaces/default/services";
    expect(await why(`${services}/missing:80/proxy/`)).toContain('services "missing" not found');
    expect(await why(`${services}/mirror:81/proxy/`)).toContain("no service port");
    expect(await why("/api/v1/nodes/spry/proxy/nothing")).toContain("the node has no /nothing");
  });
});

describe("kubectl proxy", () => {
  test("passes large bodies on, and no credentials", async () => {
    const body = "x".repeat(900_000);
    const headers = { "content-type": "text/plain" };
    const answer = await fetch(`${base}${service}/`, { method: "POST", body, headers });
    expect(await answer.json()).toEqual({ size: body.length });
    const seen = (await (
      await fetch(`${base}${service}/x`, {
        headers: { cookie: "session=1", authorization: "Bearer x" },
      })
    ).json()) as Seen;
    expect(seen.headers).not.toHaveProperty("cookie");
    expect(seen.headers).not.toHaveProperty("authorization");
    expect(seen.headers["x-forwarded-uri"]).toBe(service);
  });

  test("does not let a page act at the API's own origin", async () => {
    const { headers } = await fetch(`${base}${service}/cookie`);
    expect(headers.get("set-cookie")).toBeNull();
    expect(headers.get("content-security-policy")).toBe(
      "default-src 'self', sandbox allow-scripts",
    );
    const away = await fetch(`${base}${service}/away`, { redirect: "manual" });
    expect([away.status, away.headers.get("location")]).toEqual([302, `${service}/elsewhere`]);
  });

  test("passes on a stream as it comes", async () => {
    const answer = await fetch(`${base}${service}/stream`);
    const reader = answer.body!.getReader();
    const { value } = await reader.read();
    expect(Buffer.from(value!).toString()).toBe("data: 1\n\n");
    await reader.cancel();
  });

  test("passes WebSockets on", { timeout: 20_000 }, async () => {
    const socket = new WebSocket(`${base.replace("http", "ws")}${service}/socket`);
    await once(socket, "open");
    socket.send("hello");
    const [message] = (await once(socket, "message")) as [Buffer];
    expect(message.toString()).toBe("got hello");
    socket.close();
  });
});

test("a body with a request for another protocol is passed on as any other", async () => {
  await platform.k("create serviceaccount caller");
  await platform.k("create rolebinding caller --clusterrole=edit --serviceaccount=default:caller");
  const token = (await platform.k("create token caller")).trim();
  const answer = await new Promise<string>((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      connection: "upgrade",
      upgrade: "websocket",
      "content-type": "text/plain",
    };
    const url = `${platform.endpoints.apiServer}${service}/`;
    const sent = request(url, { method: "POST", headers, rejectUnauthorized: false });
    sent.on("response", (response) => {
      text(response).then((body) => resolve(`${response.statusCode} ${body}`), reject);
    });
    sent.on("error", reject).end("hello");
  });
  expect(answer).toBe('200 {"size":5}');
});

describe("a tenant", () => {
  test("needs the right to do so", async () => {
    await platform.k("create serviceaccount reader");
    await platform.k(
      "create rolebinding reader --clusterrole=view --serviceaccount=default:reader",
    );
    const as = ["--as=system:serviceaccount:default:reader"];
    const { stderr } = await platform.kubectl([...as, "get", "--raw", `${service}/`]);
    expect(stderr).toMatch(
      /services "mirror:80" is forbidden.*cannot get resource "services\/proxy"/,
    );
  });

  test("reaches nothing but Pods, whatever addresses an EndpointSlice names", async () => {
    const inside = createServer((_, response) => response.end("inside"));
    await once(inside.listen(0, "127.0.0.1"), "listening");
    const { port } = inside.address() as AddressInfo;
    const metadata = { name: "lure", namespace: "default" };
    const list = [
      { apiVersion: "v1", kind: "Service", metadata, spec: { ports: [{ port: 80 }] } },
      {
        apiVersion: "discovery.k8s.io/v1",
        kind: "EndpointSlice",
        metadata: { ...metadata, labels: { "kubernetes.io/service-name": "lure" } },
        addressType: "IPv4",
        ports: [{ name: "", port }],
        endpoints: [
          { addresses: ["127.0.0.1"] },
          {
            addresses: ["127.0.0.1"],
            targetRef: { kind: "Pod", name: "missing", namespace: "default" },
          },
        ],
      },
    ];
    await platform.k("apply -f -", JSON.stringify({ apiVersion: "v1", kind: "List", items: list }));
    const path = "/api/v1/namespaces/default/services/lure:80/proxy/";
    const { stderr } = await platform.kubectl(["get", "--raw", path]);
    expect(stderr).toContain('no endpoints available for service "lure"');
    inside.close();
  });
});
