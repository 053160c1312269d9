/** What two tenants with `edit` in a namespace of their own try on each other; rows for any engine. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClusterPlatform } from "./cluster-platform.ts";
import { functionManifest, type Platform } from "./platform.ts";

interface Circumstances {
  start: () => Promise<unknown>;
  /** The caller starts and removes it. */
  isStarted?: boolean;
  /** Pods share the machine's network. */
  sharesLoopback?: boolean;
  /** Why the rows cannot run. */
  why?: string | undefined;
}

/** Calls, reads files and environments as its caller asks: code that a tenant runs against another. */
const prober = `
  const fs = require("node:fs");
  module.exports = { async main(event) {
    const { url, file, token } = event.extensions.request.query;
    if (file) try { return fs.readFileSync(file, "utf8"); } catch ({ code }) { return code; }
    if (url) try {
      const headers = token ? { authorization: "Bearer " + token } : {};
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = "0";
      const answer = await fetch(url, { headers, signal: AbortSignal.timeout(5000) });
      return answer.status + " " + (await answer.text()).slice(0, 500);
    } catch (error) { return "failed " + (error.cause?.code ?? error.name); }
    return JSON.stringify(process.env);
  } };`;

export function hostileTenants(
  platform: Platform | ClusterPlatform,
  { start, isStarted = false, sharesLoopback = false, why }: Circumstances,
): void {
  if (why !== undefined) {
    test.skip(`(skipped: ${why})`);
    return;
  }
  const [mallory, alice] = ["mallory", "alice"];
  /** kubectl with the rights of a tenant. */
  const as = (tenant: string, args: string, input?: string) =>
    platform.kubectl([`--as=system:serviceaccount:${tenant}:tenant`, ...args.split(" ")], input);
  const probe = async (query: string) =>
    (await platform.call(`probe.${mallory}`, { path: `/?${query}` })).body;
  const secret = "word-of-alice";

  beforeAll(async () => {
    await start();
    for (const tenant of [mallory, alice]) {
      await platform.k(`create namespace ${tenant}`);
      await platform.k(`create serviceaccount tenant -n ${tenant}`);
      await platform.k(
        `create rolebinding tenant --clusterrole=edit --serviceaccount=${tenant}:tenant -n ${tenant}`,
      );
      await platform.k(
        `create rolebinding functions --clusterrole=kyma-functions-edit --serviceaccount=${tenant}:tenant -n ${tenant}`,
      );
    }
    await platform.k(`create secret generic words -n ${alice} --from-literal=word=${secret}`);
    const env = [{ name: "WORD", valueFrom: { secretKeyRef: { name: "words", key: "word" } } }];
    const applied = await as(
      alice,
      "apply -f -",
      functionManifest(
        "quiet",
        'module.exports = { main: () => "quiet" };',
        { env },
        { namespace: alice },
      ),
    );
    expect(applied.stderr).toBe("");
    expect(
      (
        await as(
          mallory,
          "apply -f -",
          functionManifest("probe", prober, {}, { namespace: mallory }),
        )
      ).stderr,
    ).toBe("");
    await platform.callUntil(`quiet.${alice}`, ({ body }) => body === "quiet");
    await platform.callUntil(`probe.${mallory}`, ({ status }) => status === 200);
  });
  if (!isStarted) afterAll(() => platform.remove());

  test.each([
    "get secrets",
    "get secret words",
    "get configmaps",
    "get pods",
    "get functions",
    "get functions quiet -o yaml",
    "logs deploy/quiet",
    "exec deploy/quiet -- env",
    "get --raw /api/v1/namespaces/alice/services/quiet:80/proxy/",
    "create token tenant",
    "delete function quiet",
    "scale function quiet --replicas=0",
    "delete pods --all",
    "get controllerrevisions",
    "create rolebinding mine --clusterrole=admin --serviceaccount=mallory:tenant",
    "port-forward svc/quiet 0:80",
  ])("may not: kubectl %s -n alice", async (command) => {
    const { code, stdout, stderr } = await as(mallory, `-n ${alice} ${command}`);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/forbidden|Forbidden/);
    expect(stdout + stderr).not.toContain(secret);
  });

  test.each([
    "get nodes",
    "get --raw /api/v1/nodes/spry/proxy/stats/summary",
    "get secrets -n kyma-system",
    "get secrets -A",
    "create namespace more",
    "get --raw /snapshot",
    "get --raw /metrics",
    "create clusterrolebinding mine --clusterrole=cluster-admin --serviceaccount=mallory:tenant",
    "delete crd functions.serverless.kyma-project.io",
    "get validatingwebhookconfigurations",
    "patch serverless default -n kyma-system --type=merge -p {}",
  ])("may not: kubectl %s", async (command) => {
    const { code, stderr } = await as(mallory, command);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/forbidden|Forbidden/i);
  });

  test.each(["users", "groups", "serviceaccounts", "userextras/scopes"])(
    "may not take the place of other %s",
    async (kind) => {
      for (const where of [" -A", ` -n ${alice}`])
        expect((await as(mallory, `auth can-i impersonate ${kind}${where}`)).stdout).toMatch(/^no/);
    },
  );

  test("cannot grant itself more, nor be taken for another", async () => {
    const role = {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: "all", namespace: mallory },
      rules: [{ apiGroups: ["*"], resources: ["*"], verbs: ["*"] }],
    };
    expect((await as(mallory, "apply -f -", JSON.stringify(role))).stderr).toMatch(/forbidden/i);
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: "other", namespace: mallory },
      spec: {
        serviceAccountName: "tenant",
        nodeName: "spry",
        containers: [{ name: "a", image: "x", volumeMounts: [{ name: "h", mountPath: "/h" }] }],
        volumes: [{ name: "h", hostPath: { path: "/" } }],
      },
    };
    const { stderr } = await as(
      mallory,
      "apply -f -",
      JSON.stringify({ ...pod, metadata: { ...pod.metadata, namespace: alice } }),
    );
    expect(stderr).toMatch(/forbidden/i);
  });

  test("cannot mount, or name in its variables, what is in the other namespace", async () => {
    const env = [
      { name: "WORD", valueFrom: { secretKeyRef: { name: "words", key: "word", optional: true } } },
    ];
    const secretMounts = [{ secretName: "../alice/words", mountPath: "/etc/words" }];
    const refused = await as(
      mallory,
      "apply -f -",
      functionManifest("mount", prober, { secretMounts }, { namespace: mallory }),
    );
    expect(refused.code).not.toBe(0);
    await as(
      mallory,
      "apply -f -",
      functionManifest("probe", prober, { env }, { namespace: mallory }),
    );
    await platform.k(`wait --for=condition=Running function/probe -n ${mallory} --timeout=100s`);
    expect(await probe("")).not.toContain(secret);
  });

  test("cannot have children of its Functions land in the other namespace, or adopt the other's", async () => {
    const [uid, other] = await Promise.all([
      platform.k(`get function probe -n ${mallory} -o jsonpath={.metadata.uid}`),
      platform.k(`get deployments -n ${alice} -o jsonpath={.items[*].metadata.uid}`),
    ]);
    const labels = {
      "serverless.kyma-project.io/function-name": "quiet",
      "serverless.kyma-project.io/managed-by": "function-controller",
    };
    const map = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: {
        name: "quiet",
        namespace: mallory,
        labels,
        ownerReferences: [
          {
            apiVersion: "apps/v1",
            kind: "Deployment",
            name: "quiet",
            uid: other,
            controller: true,
          },
        ],
      },
      data: { source: "evil", uid },
    };
    await as(mallory, "apply -f -", JSON.stringify(map));
    await platform.callUntil(`quiet.${alice}`, ({ body }) => body === "quiet");
    expect(
      await platform.k(`get deployments -n ${alice} -o jsonpath={.items[*].metadata.uid}`),
    ).toBe(other);
  });

  test("cannot take the other's requests with a Service of its name, or by a forged Host", async () => {
    const service = {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "quiet", namespace: mallory },
      spec: {
        selector: { "serverless.kyma-project.io/function-name": "probe" },
        ports: [{ name: "http", port: 80, targetPort: 8080 }],
        externalIPs: ["10.96.0.1"],
      },
    };
    await as(mallory, "apply -f -", JSON.stringify(service));
    for (let time = 0; time < 20; time++)
      expect((await platform.call(`quiet.${alice}`)).body).toBe("quiet");
    const { status } = await platform.call(`quiet.${alice}.evil`);
    expect(status).toBeGreaterThanOrEqual(400);
  });

  test("finds no token in its Function, and the API refuses what it has", async () => {
    expect(await probe("file=/var/run/secrets/kubernetes.io/serviceaccount/token")).toMatch(
      /^(ENOENT|EACCES)$/,
    );
    expect(await probe("")).not.toContain(secret);
    expect(await probe("")).not.toMatch(/eyJhbGciOi/);
  });

  test("gets from the platform's own addresses nothing that needs no login", async () => {
    if (!sharesLoopback) return;
    const { apiServer, registry } = (platform as Platform).endpoints;
    const refused = /^(401|403) /;
    expect(
      await probe(`url=${encodeURIComponent(`${apiServer}/api/v1/namespaces/alice/secrets`)}`),
    ).toMatch(refused);
    expect(
      await probe(`url=${encodeURIComponent(`${registry}/v2/alice/quiet/tags/list`)}`),
    ).toMatch(refused);
    expect(
      await probe(
        `url=${encodeURIComponent(`${apiServer}/api/v1/namespaces/alice/secrets`)}&token=a.b.c`,
      ),
    ).toMatch(refused);
  });

  test("leaves the other as it was", async () => {
    expect((await platform.call(`quiet.${alice}`)).body).toBe("quiet");
    const pods = "get pods -l serverless.kyma-project.io/resource=deployment";
    const restarts = "-o jsonpath={.items[*].status.containerStatuses[*].restartCount}";
    expect(await platform.k(`${pods} -n ${alice} ${restarts}`)).toBe("0");
  });
}
