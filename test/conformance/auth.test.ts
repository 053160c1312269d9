/** Who may do what, asked by real kubectl and by a client with nothing but a token. */
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Harness, hasKubectl, startHarness } from "./harness.ts";

const startupMs = 30_000;

interface Answer {
  status: number;
  body: { message?: string; [key: string]: unknown };
}

const title = `kubectl and access${hasKubectl() ? "" : " (skipped: there is no kubectl)"}`;

describe.skipIf(!hasKubectl())(title, () => {
  let harness: Harness;
  const kubectl = (...args: string[]) => harness.kubectl(...args);
  /** What kubectl says when it is refused. */
  const refusal = async (...args: string[]) => {
    const { stderr, code } = await harness.kubectlWith("", ...args);
    expect(code).not.toBe(0);
    return stderr;
  };

  beforeAll(async () => {
    harness = await startHarness();
    await kubectl("create", "serviceaccount", "robot");
    await kubectl(
      "create",
      "rolebinding",
      "robot-views",
      "--clusterrole=view",
      "--serviceaccount=default:robot",
    );
  }, startupMs);
  afterAll(() => harness.close());

  test("auth can-i answers by roles", async () => {
    const robot = ["--as", "system:serviceaccount:default:robot"];
    expect(await kubectl("auth", "can-i", "delete", "nodes")).toBe("yes\n");
    expect(await kubectl("auth", "can-i", "list", "pods", ...robot)).toBe("yes\n");
    const { stdout } = await harness.kubectlWith("", "auth", "can-i", "get", "secrets", ...robot);
    expect(stdout).toBe("no\n");
    expect(await kubectl("auth", "can-i", "--list", ...robot)).toMatch(
      /configmaps +\[\] +\[\] +\[get list watch\]/,
    );
  });

  test("auth whoami", async () => {
    const told = await kubectl(
      "auth",
      "whoami",
      "--as=jane",
      "--as-group=dev",
      "--as-uid=7",
      "-o=json",
    );
    expect(JSON.parse(told)).toMatchObject({
      kind: "SelfSubjectReview",
      status: { userInfo: { username: "jane", uid: "7", groups: ["dev", "system:authenticated"] } },
    });
  });

  test("who may only view is refused to write, in Kubernetes' words", async () => {
    const kubeconfig = await kubeconfigWith(await kubectl("create", "token", "robot"));
    const robot = ["--kubeconfig", kubeconfig];
    expect(await kubectl("get", "pods", ...robot)).toBe("");
    expect(await refusal("create", "configmap", "x", ...robot)).toContain(
      'error: failed to create configmap: configmaps is forbidden: User "system:serviceaccount:default:robot" cannot create resource "configmaps" in API group "" in the namespace "default"',
    );
    expect(await refusal("get", "pods", "-A", ...robot)).toContain(
      'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" at the cluster scope',
    );
    expect(await refusal("get", "pods", "--as=jane", ...robot)).toContain(
      'users "jane" is forbidden: User "system:serviceaccount:default:robot" cannot impersonate resource "users" in API group "" at the cluster scope',
    );
  });

  test("create token: for a time, an audience, an object", async () => {
    await kubectl("create", "secret", "generic", "holder");
    const bound = await kubectl(
      "create",
      "token",
      "robot",
      "--bound-object-kind=Secret",
      "--bound-object-name=holder",
      "--duration=20m",
    );
    const claims = claimsOf(bound);
    expect(Number(claims.exp) - Number(claims.iat)).toBe(1200);
    expect(claims).toMatchObject({ "kubernetes.io": { secret: { name: "holder" } } });
    expect((await send("/api/v1/namespaces/default/pods", bound)).status).toBe(200);
    await kubectl("delete", "secret", "holder");
    expect((await send("/api/v1/namespaces/default/pods", bound)).status).toBe(401);

    const foreign = await kubectl("create", "token", "robot", "--audience=vault");
    expect(claimsOf(foreign).aud).toEqual(["vault"]);
    expect((await send("/api/v1/namespaces/default/pods", foreign)).status).toBe(401);
    expect(await review(foreign, ["vault"])).toMatchObject({
      authenticated: true,
      audiences: ["vault"],
      user: { username: "system:serviceaccount:default:robot" },
    });
    expect(await review(foreign)).toMatchObject({
      error: expect.stringContaining("token audiences"),
    });
    expect(await refusal("create", "token", "robot", "--duration=1m")).toContain(
      "may not specify a duration less than 10 minutes",
    );
  });

  test("a token is good as long as its ServiceAccount is the same", async () => {
    await kubectl("create", "serviceaccount", "brief");
    const token = await kubectl("create", "token", "brief");
    expect(await review(token)).toMatchObject({ authenticated: true });
    await kubectl("delete", "serviceaccount", "brief");
    await kubectl("create", "serviceaccount", "brief");
    expect(await review(token)).toMatchObject({ error: expect.stringContaining("UID") });
  });

  test("a Secret for a ServiceAccount is filled, and goes with it", async () => {
    await kubectl("create", "serviceaccount", "old");
    const secret = {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/service-account-token",
      metadata: { name: "old-token", annotations: { "kubernetes.io/service-account.name": "old" } },
    };
    await harness.kubectlWith(JSON.stringify(secret), "apply", "-f", "-");
    const token = await expect
      .poll(() => kubectl("get", "secret", "old-token", "-o=jsonpath={.data.token}"))
      .not.toBe("")
      .then(() => kubectl("get", "secret", "old-token", "-o=jsonpath={.data.token}"));
    const status = await review(Buffer.from(token, "base64").toString());
    expect(status).toMatchObject({ user: { username: "system:serviceaccount:default:old" } });
    await kubectl("delete", "serviceaccount", "old");
    await expect.poll(() => kubectl("get", "secrets", "-o=name")).not.toContain("old-token");
  });

  test("auth reconcile puts missing rules and subjects there", async () => {
    const manifest = (verbs: string[]) =>
      JSON.stringify({
        apiVersion: "rbac.authorization.k8s.io/v1",
        kind: "Role",
        metadata: { name: "kept", namespace: "default" },
        rules: [{ apiGroups: [""], resources: ["pods"], verbs }],
      });
    for (const verbs of [["get"], ["list"]]) {
      const { code } = await harness.kubectlWith(manifest(verbs), "auth", "reconcile", "-f", "-");
      expect(code).toBe(0);
    }
    const rules = JSON.parse(
      await kubectl("get", "role", "kept", "-o=jsonpath={.rules}"),
    ) as object[];
    expect(rules).toHaveLength(2);
  });

  test("a role of a binding cannot be exchanged", async () => {
    const change = `{"roleRef":{"name":"edit"}}`;
    expect(
      await refusal("patch", "rolebinding", "robot-views", "--type=merge", "-p", change),
    ).toContain("cannot change roleRef");
  });

  test("without credentials: 401, except for who asks after the server's health", async () => {
    expect(await send("/api/v1/pods")).toMatchObject({
      status: 401,
      body: { message: "Unauthorized" },
    });
    expect((await send("/apis")).status).toBe(401);
    for (const open of ["/healthz", "/livez", "/readyz", "/version"]) {
      expect([open, (await send(open)).status]).toEqual([open, 200]);
    }
    expect((await send("/api/v1/pods", "a.b.c")).status).toBe(401);
  });

  test("tokens can be checked by any program that knows OpenID Connect", async () => {
    const document = JSON.parse(
      await kubectl("get", "--raw", "/.well-known/openid-configuration"),
    ) as object;
    expect(document).toMatchObject({
      issuer: claimsOf(await kubectl("create", "token", "robot")).iss,
    });
    const keys = JSON.parse(await kubectl("get", "--raw", "/openid/v1/jwks")) as { keys: object[] };
    expect(keys.keys).toMatchObject([{ kty: "EC", alg: "ES256", use: "sig" }]);
  });

  async function review(token: string, audiences?: string[]): Promise<unknown> {
    const body = {
      kind: "TokenReview",
      apiVersion: "authentication.k8s.io/v1",
      spec: { token: token.trim(), audiences },
    };
    const { stdout, stderr } = await harness.kubectlWith(
      JSON.stringify(body),
      "create",
      "-f",
      "-",
      "-o=json",
    );
    expect(stderr).toBe("");
    return (JSON.parse(stdout) as { status: unknown }).status;
  }

  async function kubeconfigWith(token: string): Promise<string> {
    const config = JSON.parse(readFileSync(harness.kubeconfig, "utf8")) as {
      users: { user: object }[];
    };
    config.users = config.users.map((each) => ({ ...each, user: { token: token.trim() } }));
    const file = path.join(harness.directory, "token.kubeconfig");
    writeFileSync(file, JSON.stringify(config));
    return file;
  }

  function send(where: string, token?: string): Promise<Answer> {
    const ca = readFileSync(path.join(harness.directory, "ca.crt"));
    const headers = token ? { authorization: `Bearer ${token.trim()}` } : {};
    return new Promise((resolve, reject) => {
      const sent = request(`${harness.url}${where}`, { ca, headers, agent: false }, (response) => {
        let text = "";
        response.on("data", (chunk: Buffer) => (text += chunk.toString()));
        response.on("end", () => {
          const body = (text.startsWith("{") ? JSON.parse(text) : {}) as Answer["body"];
          resolve({ status: response.statusCode ?? 0, body });
        });
      });
      sent.on("error", reject).end();
    });
  }
});

function claimsOf(token: string): Record<string, unknown> {
  const [, payload = ""] = token.split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
}
