/** With the real `go`, and a registry of Go modules in a directory (`GOPROXY=file://`). */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { silentLogger } from "@spry/kube";
import { describe, expect, test, vi } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { fetchPython } from "./fetch-python.ts";
import { Interpreters } from "./interpreters.ts";

const lacking = ["go", "python3"].filter((name) => spawnSync("which", [name]).status !== 0);
const why = lacking.length > 0 ? ` (skipped: needs ${lacking.join(" and ")})` : "";

const module = "github.com/kluctl/go-embed-python";
const system = process.platform;
const data = `python/internal/data/${system}-${process.arch === "x64" ? "amd64" : "arm64"}`;
const directory = 2 ** 31 + 0o755;

interface Entry {
  name: string;
  perm?: number;
  symlink?: string;
  compressed?: boolean;
  content?: string;
}

const python: Entry[] = [
  { name: "bin", perm: directory },
  { name: "bin/python3.14", perm: 0o775, content: "the program", compressed: true },
  { name: "bin/python3", symlink: "python3.14" },
  { name: "lib/python3.14/os.py", content: "# a module" },
];
const pip: Entry[] = [{ name: "pip/__init__.py", content: "# pip" }];

/** A registry with these versions of the module, all of the same content. Returns what leads `go` to it. */
function registry(tags: string[], entries: Entry[] = python): Record<string, string> {
  const dir = temporaryDirectory();
  const place = path.join(dir, "proxy", module, "@v");
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, "list"), tags.map((tag) => `${tag}\n`).join(""));
  for (const tag of tags) {
    const files: Record<string, string> = { "go.mod": `module ${module}\n` };
    Object.assign(files, filesOf(data, entries), filesOf("pip/internal/data", pip));
    writeFileSync(path.join(place, `${tag}.info`), JSON.stringify({ Version: tag }));
    writeFileSync(path.join(place, `${tag}.mod`), files["go.mod"] ?? "");
    const zip = `import base64, json, sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as zip:
    for name, content in json.load(sys.stdin).items():
        zip.writestr("${module}@${tag}/" + name, base64.b64decode(content))`;
    const input = JSON.stringify(
      Object.fromEntries(
        Object.entries(files).map(([name, text]) => [
          name,
          Buffer.from(text, "latin1").toString("base64"),
        ]),
      ),
    );
    const made = spawnSync("python3", ["-c", zip, path.join(place, `${tag}.zip`)], { input });
    expect(made.stderr.toString()).toBe("");
  }
  return {
    PATH: process.env["PATH"] ?? "",
    HOME: path.join(dir, "home"),
    GOPROXY: `file://${path.join(dir, "proxy")}`,
    GOSUMDB: "off",
  };
}

function filesOf(below: string, entries: Entry[]): Record<string, string> {
  const listed = entries.map(({ content = "", perm = 0o664, ...entry }) => {
    return { ...entry, perm: entry.symlink === undefined ? perm : 2 ** 27, size: content.length };
  });
  const files = { [`${below}/files.json`]: JSON.stringify({ files: listed }) };
  for (const { name, content, compressed } of entries) {
    if (content === undefined) continue;
    const stored = compressed ? gzipSync(content).toString("latin1") : content;
    files[`${below}/${name}${compressed ? ".gz" : ""}`] = stored;
  }
  return files;
}

const placeOf = ({ HOME = "" }: Record<string, string>) => path.join(HOME, ".cache/spry");

describe.skipIf(why !== "")(`Python from the registry of Go modules${why}`, () => {
  test("the newest release of the version is unpacked, with pip, and nothing else is left", async () => {
    const env = registry([
      "v0.0.0-3.13.9-20260101-1",
      "v0.0.0-3.14.2-20260401-1",
      "v0.0.0-3.14.10-20260301-1",
    ]);
    const said: string[] = [];
    expect(await fetchPython("3.14", (message) => said.push(message), env)).toBeUndefined();
    expect(said).toEqual([
      `Fetching Python 3.14.10 (Go module ${module} v0.0.0-3.14.10-20260301-1)`,
    ]);
    expect(readdirSync(placeOf(env))).toEqual(["pythons"]);
    const dir = path.join(placeOf(env), "pythons/python-3.14.10");
    const program = path.join(dir, "bin/python3.14");
    expect(readFileSync(program, "utf8")).toBe("the program");
    expect(statSync(program).mode & 0o777).toBe(0o755);
    expect(readlinkSync(path.join(dir, "bin/python3"))).toBe("python3.14");
    const library = path.join(dir, "lib/python3.14");
    expect(readdirSync(library).sort()).toEqual(["os.py", "site-packages"]);
    expect(existsSync(path.join(library, "site-packages/pip/__init__.py"))).toBe(true);
    // As another platform would, at the same time.
    expect(await fetchPython("3.14", (message) => said.push(message), env)).toBeUndefined();
    expect(said).toHaveLength(1);
  });

  test("one that does not run here is fetched once, and refused", async () => {
    const env = registry(["v0.0.0-3.77.1-20260301-1"]);
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    const said: string[] = [];
    for (let attempt = 0; attempt < 2; attempt++) {
      const interpreters = new Interpreters({ dataDir: temporaryDirectory(), log: silentLogger });
      await expect(
        interpreters.ensure("python@3.77", (message) => said.push(message)),
      ).rejects.toThrow(/^Python 3\.77 is not .*; the downloaded interpreter does not run here\)/);
    }
    expect(said).toHaveLength(1);
    vi.unstubAllEnvs();
  });

  test("a cache that cannot be written to, and a registry's password, are no trouble", async () => {
    const env = registry([]);
    writeFileSync(path.join(path.dirname(env["HOME"] ?? ""), "file"), "");
    const inFile = { ...env, XDG_CACHE_HOME: path.join(env["HOME"] ?? "", "../file") };
    expect(await fetchPython("3.14", () => {}, inFile)).toMatch(/^fetching it .* failed: ENOTDIR/);
    const guarded = { ...env, GOPROXY: "https://name:secret@127.0.0.1:1" };
    const lack = await fetchPython("3.14", () => {}, guarded);
    expect(lack).toMatch(/^fetching it .* failed: .*127\.0\.0\.1:1/s);
    expect(lack).not.toMatch(/secret|name:/);
  });

  test("a version that is not carried, or no Go, is said", async () => {
    const env = registry(["v0.0.0-3.13.9-20260101-1"]);
    expect(await fetchPython("3.14", () => {}, env)).toBe(
      "the registry of Go modules does not carry it",
    );
    expect(await fetchPython("3.14", () => {}, { ...env, PATH: "/nowhere" })).toBe(
      "Go, which would download it, is not installed either",
    );
  });

  test("the refusal says what there is, why no other was fetched, and what helps", async () => {
    for (const [name, value] of Object.entries(registry([]))) vi.stubEnv(name, value);
    const dataDir = temporaryDirectory();
    const interpreters = new Interpreters({ dataDir, log: silentLogger });
    await expect(interpreters.ensure("python@3.77", () => {})).rejects.toThrow(
      /^Python 3\.77 is not on this machine \(it has .*; the registry of Go modules does not carry it\): install it/,
    );
    vi.unstubAllEnvs();
  });

  test("a registry that cannot be reached is said", async () => {
    const env = { ...registry([]), GOPROXY: "file:///nowhere" };
    expect(await fetchPython("3.14", () => {}, env)).toMatch(
      /^fetching it with .*go failed: .*nowhere/s,
    );
    expect(readdirSync(placeOf(env))).toEqual([]);
  });

  test.each<{ what: string; entry: Entry; reason: string }>([
    {
      what: "a name outside",
      entry: { name: "../x" },
      reason: "../x would lie outside",
    },
    { what: "an absolute name", entry: { name: "/x" }, reason: "/x would lie outside" },
    {
      what: "a link that leads outside",
      entry: { name: "bin/x", symlink: "../../x" },
      reason: "../x would lie outside",
    },
    {
      what: "an absolute link",
      entry: { name: "bin/x", symlink: "/etc/passwd" },
      reason: "bin/x leads to /etc/passwd",
    },
    {
      what: "a file twice",
      entry: { name: "lib/python3.14/os.py", content: "" },
      reason: "EEXIST",
    },
  ])("$what is refused, and leaves nothing", async ({ entry, reason }) => {
    const env = registry(["v0.0.0-3.14.1-20260101-1"], [...python, entry]);
    expect(await fetchPython("3.14", () => {}, env)).toContain(reason);
    expect(readdirSync(placeOf(env))).toEqual([]);
  });
});
