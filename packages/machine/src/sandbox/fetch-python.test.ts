/** With the real `go`, and a registry of Go modules in a directory (`GOPROXY=file://`). */
import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { type AddressInfo } from "node:net";
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

const registryOfNone = () => ({
  PATH: process.env["PATH"] ?? "",
  HOME: path.join(temporaryDirectory(), "home"),
  GOSUMDB: "off",
});

/** Takes each connection, and answers what `answerOf` knows by the last part of its path, and nothing else, ever. */
async function silentServer(answerOf: (name: string) => string | undefined = () => undefined) {
  const server = createServer((request, response) => {
    const answer = answerOf(path.posix.basename(request.url ?? ""));
    if (answer !== undefined) response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe("Node.js from npm's registry", () => {
  test.each([
    {
      what: "never answers",
      answer: undefined,
      waits: 2_000,
      says: /its registry has not answered within 2 s/,
    },
    { what: "has no such version", answer: "{}", waits: 60_000, says: /npm error/ },
  ])("one that $what is a missing interpreter at once", async ({ answer, waits, says }) => {
    await using registry = await silentServer(() => answer);
    const dir = temporaryDirectory();
    const npmConfig = path.join(dir, "npmrc");
    writeFileSync(npmConfig, `registry=${registry.url}\ncache=${path.join(dir, "cache")}\n`);
    const npmCli = path.join(
      path.dirname(createRequire(import.meta.url).resolve("npm/package.json")),
      "bin/npm-cli.js",
    );
    vi.stubEnv("npm_config_userconfig", path.join(dir, "none"));
    vi.stubEnv("npm_config_registry", registry.url);
    const options = { dataDir: dir, log: silentLogger, npmCli, npmConfig, answerTimeoutMs: waits };
    const failure = await new Interpreters(options).ensure("node@22", () => {}).catch(String);
    vi.unstubAllEnvs();
    expect(failure).toMatch(
      /^MissingInterpreterError: Node\.js 22 is not on this machine, and installing it with npm failed: /,
    );
    expect(failure).toMatch(says);
  });
});

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

  test("a registry that never answers is waited for as long as a person waits", async () => {
    await using registry = await silentServer();
    const env = { ...registryOfNone(), GOPROXY: registry.url };
    const limits = { answerMs: 300, gapMs: 300, totalMs: 60_000 };
    expect(await fetchPython("3.14", () => {}, env, limits)).toMatch(
      /^fetching it with .*go failed: the registry of Go modules has sent nothing for 0\.3 s$/,
    );
    expect(readdirSync(placeOf(env))).toEqual([]);
  });

  test("one that answers, and stops in the middle of the download, is given up, too", async () => {
    const tag = "v0.0.0-3.14.1-20260101-1";
    const answers: Record<string, string> = {
      list: `${tag}\n`,
      [`${tag}.info`]: JSON.stringify({ Version: tag }),
      [`${tag}.mod`]: `module ${module}\n`,
    };
    await using registry = await silentServer((name) => answers[name]);
    const env = { ...registryOfNone(), GOPROXY: registry.url };
    const limits = { answerMs: 60_000, gapMs: 2_000, totalMs: 60_000 };
    expect(await fetchPython("3.14", () => {}, env, limits)).toMatch(
      /: the registry of Go modules has sent nothing for 2 s$/,
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
