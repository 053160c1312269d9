import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadKubeconfig } from "./kubeconfig.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "kubeconfig-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

function file(name: string, content: object | string): string {
  const path = join(directory, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/** A kubeconfig of one context, with these fields of its cluster, user and context. */
function config(cluster: object = {}, user: object = {}, context: object = {}): object {
  return {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "main",
    clusters: [{ name: "c", cluster: { server: "https://api.test:6443", ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "main", context: { cluster: "c", user: "u", ...context } }],
  };
}

const base64 = (text: string) => Buffer.from(text).toString("base64");

describe("a kubeconfig", () => {
  test("is YAML", () => {
    const path = file(
      "config",
      `
current-context: main
clusters:
- name: c
  cluster: {server: "https://api.test:6443/prefix/"}
users:
- name: u
  user:
    token: secret
contexts:
- name: main
  context: {cluster: c, user: u, namespace: team}
`,
    );
    expect(loadKubeconfig(path)).toEqual({
      context: "main",
      server: "https://api.test:6443/prefix",
      namespace: "team",
      token: "secret",
    });
  });

  test("may hold certificates, or name files next to it; what it holds goes first", () => {
    file("pki/ca.crt", "CA");
    file("pki/client.crt", "from a file");
    file("pki/client.key", "KEY");
    const path = file(
      "config",
      config(
        { "certificate-authority": "pki/ca.crt", "tls-server-name": "kubernetes" },
        {
          "client-certificate": "pki/client.crt",
          "client-certificate-data": base64("held"),
          "client-key": "pki/client.key",
        },
      ),
    );
    expect(loadKubeconfig(path)).toEqual({
      context: "main",
      server: "https://api.test:6443",
      namespace: "default",
      certificateAuthority: "CA",
      tlsServerName: "kubernetes",
      clientCertificate: "held",
      clientKey: "KEY",
    });
  });

  test("may name a plugin, and whom to act as", () => {
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "./login",
      args: ["a"],
      env: [{ name: "E", value: "1" }],
      installHint: "install it",
    };
    const path = file("config", config({}, { exec, as: "jane", "as-groups": ["g"] }));
    expect(loadKubeconfig(path)).toMatchObject({
      exec: {
        ...exec,
        env: { E: "1" },
        interactiveMode: "IfAvailable",
        provideClusterInfo: false,
        directory,
      },
      impersonate: { user: "jane", groups: ["g"] },
    });
  });

  test("has several contexts, of which one is current", () => {
    const both = config() as { contexts: object[] };
    both.contexts.push({ name: "other", context: { cluster: "c", user: "u", namespace: "o" } });
    const path = file("config", both);
    expect(loadKubeconfig(path).namespace).toBe("default");
    expect(loadKubeconfig(path, { context: "other" }).namespace).toBe("o");
  });

  test("may be spread over the files of KUBECONFIG; the first to name something wins", () => {
    const first = file("first", {
      "current-context": "main",
      users: [{ name: "u", user: { token: "first" } }],
    });
    const second = file("second", config({}, { token: "second" }));
    const env = { KUBECONFIG: [join(directory, "missing"), first, second].join(":") };
    expect(loadKubeconfig(undefined, { env }).token).toBe("first");
  });

  test("is looked for in the home directory, and in a Pod at its service account", () => {
    const env: NodeJS.ProcessEnv = { HOME: directory };
    expect(() => loadKubeconfig(undefined, { env })).toThrow("specify a kubeconfig file");
    env.KUBERNETES_SERVICE_HOST = "10.96.0.1";
    env.KUBERNETES_SERVICE_PORT = "6443";
    file("sa/ca.crt", "CA");
    file("sa/namespace", "team\n");
    const inPod = loadKubeconfig(undefined, { env, serviceAccountDir: join(directory, "sa") });
    expect(inPod).toEqual({
      server: "https://10.96.0.1:6443",
      namespace: "team",
      certificateAuthority: "CA",
      tokenFile: join(directory, "sa/token"),
    });
    file(".kube/config", config({}, { token: "home" }));
    expect(loadKubeconfig(undefined, { env }).token).toBe("home");
  });

  test.each([
    ["is no YAML", "a: [", "reading kubeconfig"],
    ["is a list", "[]", "an object of kind Config"],
    ["has no current context", {}, "no current-context"],
    ["names a missing cluster", { ...config(), clusters: [] }, "the cluster of context"],
    ["names a missing user", { ...config(), users: [] }, "user u does not exist"],
    ["has no server", config({ server: "" }), "must be an http or https URL"],
    ["has another kind of server", config({ server: "ftp://x" }), "must be an http or https URL"],
    ["asks for a proxy", config({ "proxy-url": "http://p" }), "proxy-url, which is not supported"],
    ["has an auth-provider", config({}, { "auth-provider": {} }), "use an exec plugin"],
    ["has half a key pair", config({}, { "client-key-data": "eA==" }), "needs both"],
    [
      "has an old plugin",
      config({}, { exec: { command: "x", apiVersion: "v1alpha1" } }),
      "v1beta1",
    ],
    ["names a missing file", config({ "certificate-authority": "none.crt" }), "ENOENT"],
  ])("that %s is refused", (_, content, message) => {
    expect(() => loadKubeconfig(file("config", content))).toThrow(message);
  });

  test("that KUBECONFIG names must exist", () => {
    const env = { KUBECONFIG: join(directory, "none") };
    expect(() => loadKubeconfig(undefined, { env })).toThrow("no file of KUBECONFIG");
  });
});
