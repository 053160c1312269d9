import { randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { identify } from "@spry/kube";
import { dashboard } from "./commands/dashboard.ts";
import { kubeconfigFile, loadConfig } from "./connection.ts";

let directory: string;
let ran: string;
beforeEach(() => {
  directory = mkdtempSync(path.join(tmpdir(), "spry-foreign-"));
  ran = path.join(directory, "ran");
  vi.stubEnv("KUBECONFIG", undefined);
  vi.spyOn(process, "cwd").mockReturnValue(directory);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

interface Given {
  server?: string;
  user?: object;
  mode?: number;
  marker?: boolean;
}

function give({
  server = "https://127.0.0.1:6443",
  user = {},
  mode = 0o600,
  marker = true,
}: Given) {
  mkdirSync(path.join(directory, ".spry", marker ? "pki" : "other"), { recursive: true });
  const file = path.join(directory, ".spry", "kubeconfig");
  const config = {
    clusters: [{ name: "c", cluster: { server } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  };
  writeFileSync(file, JSON.stringify(config));
  chmodSync(file, mode);
  return file;
}

test("the kubeconfig of this directory's platform is found", () => {
  give({});
  expect(loadConfig({}).server).toBe("https://127.0.0.1:6443");
});

test("also from a directory below, where a new Function's files are", () => {
  give({});
  const below = path.join(directory, "apps", "dice");
  mkdirSync(below, { recursive: true });
  vi.spyOn(process, "cwd").mockReturnValue(below);
  expect(loadConfig({}).server).toBe("https://127.0.0.1:6443");
  // What is not to be trusted is not, from wherever it is found.
  give({ mode: 0o644 });
  expect(() => loadConfig({})).toThrow("other users may read");
});

test.skipIf(process.getuid?.() !== 0)("another user's file above is passed over", () => {
  const file = give({});
  chownSync(file, 65_534, 65_534);
  const below = path.join(directory, "dice");
  mkdirSync(below);
  vi.spyOn(process, "cwd").mockReturnValue(below);
  vi.stubEnv("HOME", directory);
  expect(() => loadConfig({})).toThrow("no platform was started in this directory or one above it");
  vi.spyOn(process, "cwd").mockReturnValue(directory);
  expect(() => loadConfig({})).toThrow("it belongs to another user");
});

const exec = () => ({
  exec: {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "/bin/sh",
    args: ["-c", `touch ${ran}`],
    interactiveMode: "Never",
  },
});

test.each<[string, () => Given, string]>([
  ["runs a program", () => ({ user: exec() }), "names a program"],
  ["sends a file away", () => ({ user: { tokenFile: "/etc/hostname" } }), "of another file"],
  ["leads to another machine", () => ({ server: "https://evil.example" }), "is not this machine"],
  [
    "only begins like this one",
    () => ({ server: "https://127.0.0.1.evil.example" }),
    "is not this",
  ],
  ["has come with a checkout", () => ({ mode: 0o644 }), "other users may read"],
  ["is in no data directory", () => ({ marker: false }), "not in a data directory"],
])("one in an untrusted directory that %s is not used", (_, given, why) => {
  const file = give(given());
  expect(() => loadConfig({})).toThrow(why);
  expect(existsSync(ran)).toBe(false);
  // Named by the user, it is the user's choice.
  expect(() => loadConfig({ kubeconfig: file })).not.toThrow();
});

test.each(["", ":", "::"])("KUBECONFIG=%j is the same as unset", async (value) => {
  give({});
  const dataDir = path.join(directory, ".spry");
  vi.stubEnv("KUBECONFIG", value);
  expect(loadConfig({}).server).toBe("https://127.0.0.1:6443");
  expect(loadConfig({ kubeconfig: "" }).server).toBe("https://127.0.0.1:6443");
  expect(kubeconfigFile({})).toBe(path.join(dataDir, "kubeconfig"));
  // The platform of the directory is the one that is meant, too.
  const write = (name: string, content: string) =>
    writeFileSync(path.join(dataDir, name), content, { mode: 0o600 });
  write("dashboard-key", randomBytes(32).toString("base64url"));
  write("lock", JSON.stringify(identify(process.pid)));
  write("endpoints.json", JSON.stringify({ dashboard: "http://evil.example" }));
  await expect(dashboard({ dataDir, open: false })).rejects.toThrow("names a dashboard at");
});

test("a dashboard that is not this machine's is not opened for the directory's sake", async () => {
  give({});
  const dataDir = path.join(directory, ".spry");
  const write = (name: string, content: string) =>
    writeFileSync(path.join(dataDir, name), content, { mode: 0o600 });
  write("dashboard-key", randomBytes(32).toString("base64url"));
  write("lock", JSON.stringify(identify(process.pid)));
  write("endpoints.json", JSON.stringify({ dashboard: "http://evil.example" }));
  const options = { dataDir, open: false };
  await expect(dashboard(options)).rejects.toThrow("names a dashboard at evil.example");
  chmodSync(path.join(dataDir, "dashboard-key"), 0o644);
  await expect(dashboard(options)).rejects.toThrow("other users may read or change it");
});
