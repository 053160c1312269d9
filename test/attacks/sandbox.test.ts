/** A hostile container in each sandbox that this machine can run, as root and as an ordinary user. */
import { execFile, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { hasRuntime } from "../support/host-address.ts";
import { root } from "../support/platform.ts";

/** `nobody`, who is in every system's list of users. */
const ordinaryUser = 65_534;
const isRoot = process.platform === "linux" && process.getuid?.() === 0;

interface Case {
  name: string;
  kind: "process" | "oci";
  uid: number | undefined;
  why: string | undefined;
  /** As `kubectl get nodes -o wide` shows it. */
  runtime: RegExp;
  /** Before the program, which is run without some rights then. */
  prefix?: string[];
  /** What is not kept apart, and is done. */
  open?: readonly string[];
}

/** Without namespaces a Pod sees the machine, as an ordinary user of it. */
const notByUsers = ["see processes", "make a user namespace"];

const cases: Case[] = [
  {
    name: "oci",
    kind: "oci",
    uid: undefined,
    why: isRoot && hasRuntime() ? undefined : "needs root and runc",
    runtime: /^oci:\/\/(runc|crun)$/,
  },
  {
    name: "process, as root",
    kind: "process",
    uid: undefined,
    why: isRoot ? undefined : "needs root",
    runtime: /^process:\/\/namespaces$/,
  },
  {
    name: "process, as root without CAP_SYS_ADMIN",
    kind: "process",
    uid: undefined,
    why: isRoot ? undefined : "needs root",
    runtime: /^process:\/\/users$/,
    prefix: [
      "setpriv",
      "--bounding-set=-sys_admin,-sys_ptrace",
      "--inh-caps=-sys_admin,-sys_ptrace",
    ],
    open: notByUsers,
  },
  {
    name: "process, as an ordinary user",
    kind: "process",
    uid: isRoot ? ordinaryUser : undefined,
    why: process.platform === "linux" ? whyNoUserNamespaces() : "needs Linux",
    runtime: /^process:\/\/user-namespaces$/,
  },
];

function whyNoUserNamespaces(): string | undefined {
  const user = isRoot ? { uid: ordinaryUser, gid: ordinaryUser } : {};
  const { status } = spawnSync("unshare", ["--user", "--map-current-user", "true"], user);
  if (status !== 0) return "this system gives no user namespaces to ordinary users";
  const read = ["-e", "fs.readdirSync(process.argv[1])", path.join(root, "node_modules")];
  return spawnSync(process.execPath, read, user).status === 0
    ? undefined
    : `only its owner may read ${root}`;
}

/** Node.js passes no directories. */
const hasPython = ["/usr/bin/python3", "/usr/local/bin/python3"].some(existsSync);

const refused = expect.stringMatching(/^refused/) as string;
const allRefused = (count: number) => Array.from({ length: count }, () => refused);

describe.each(cases)("a hostile container in $name", (each) => {
  const { name, kind, uid, why, runtime, prefix = [], open = [] } = each;
  if (why !== undefined) return test.skip(`(skipped: ${why})`);
  let got: Record<string, unknown> = {};
  beforeAll(async () => {
    const dir = mkdtempSync(path.join(tmpdir(), "hostile-"));
    if (uid !== undefined) chownSync(dir, uid, uid);
    const program = path.join(import.meta.dirname, "sandbox/run-hostile.ts");
    const user = uid === undefined ? {} : { uid, gid: uid };
    const options = { ...user, env: { PATH: process.env["PATH"] }, timeout: 90_000 };
    const [file, ...args] = [...prefix, process.execPath, program, kind, dir];
    const { stdout } = await promisify(execFile)(file, args, options);
    got = JSON.parse(stdout) as Record<string, unknown>;
    rmSync(dir, { recursive: true, force: true });
  }, 100_000);

  test("is where it should be", () => {
    expect(got["kind"]).toMatch(runtime);
    expect(got["error"]).toBeUndefined();
  });

  test.each<[string, unknown]>([
    ["read the platform's files", allRefused(2)],
    ["read another Pod's files", refused],
    ["read environments", []],
    ["see processes", []],
    ["signal other processes", allRefused(2)],
    ["leave by the first process's root", refused],
    ["become root", allRefused(3)],
    ["mount", allRefused(2)],
    ["make a user namespace", refused],
    ["leave the root directory", refused],
    ["make a device", refused],
    ["open devices", allRefused(5)],
    ["write to the machine", allRefused(6)],
    ["write to its root directory", allRefused(3)],
    ["fork", refused],
    ["follow a link in a volume", refused],
  ])("cannot %s", (attack, expected) => {
    if (!open.includes(attack)) expect(got[attack]).toEqual(expected);
  });

  test("cannot leave by a directory that another container passes to it", () => {
    const isPassed = kind === "process" && hasPython && prefix.length === 0;
    if (prefix.length === 0)
      expect(got["climb"]).toMatch(isPassed ? /^refused, ends at: .*\bmachine\b/ : /^refused/);
  });

  test("has no rights of root, and can gain none", () => {
    expect(got["user"]).not.toBe(0);
    expect(got["keep capabilities"]).toBe("0000000000000000");
    expect(got["gain privileges"]).toBe("1");
  });

  test("learns no other Pod's name from directories", () => {
    expect([[], refused]).toContainEqual(got["list other Pods"]);
  });

  test("leaves no core dump on the machine", () => {
    if (kind === "oci") expect(got["dump its memory"]).toBeDefined();
    else expect(got["dump its memory"]).toBe("0");
  });

  test("has its variables to itself: helpers with privileges do not load its libraries", () => {
    expect(String(got["log"]).match(/evil\.so/g) ?? []).toHaveLength(1);
  });

  // The one thing that `process` does not keep apart; docs/security.md says so.
  test(`${name === "oci" ? "cannot reach" : "reaches"} what listens on this machine's loopback`, () => {
    expect(got["call loopback"]).toBe(kind === "oci" ? "refused" : "done");
  });

  test("cannot write to its image", () => {
    // In `oci` to a copy, if it were its user's.
    expect(got["write to its image"]).toEqual(refused);
  });
});
