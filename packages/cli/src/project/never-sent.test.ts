/** What stays here, whatever a directory has in it. */
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { listPresent, listSource } from "./files.ts";

function directory(files: Record<string, string>): string {
  const root = mkdtempSync(path.join(tmpdir(), "source-"));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    writeFileSync(path.join(root, name), content);
  }
  return root;
}

const sent = (root: string) => listSource(root).files.map((file) => file.path);
const key = "-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n";
const certificate = "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----\n";

test.each([
  ".env",
  ".env.production",
  "config/prod.env",
  ".dev.vars",
  ".dev.vars.staging",
  "local.settings.json",
  ".envrc",
  ".flaskenv",
  ".git-credentials",
  ".pypirc",
  ".netrc",
  ".pgpass",
  ".docker/config.json",
  ".azure/accessTokens.json",
  ".aws/credentials",
  "service-account.json",
  "my_service_account-dev.json",
  "client_secret_123.apps.json",
  "terraform.tfstate",
  "infra/terraform.tfstate.backup",
  "prod.tfvars",
  ".htpasswd",
  "kubeconfig.yaml",
  "kubeconfig-prod",
  "dev.kubeconfig",
  "server.key",
  "app.keystore",
  "AuthKey_1.p8",
  "id_ed25519",
])("%s may be secret: it stays here and is named", (name) => {
  const root = directory({ "handler.js": "", [name]: "x" });
  expect(sent(root)).toEqual(["handler.js"]);
  const [kept = ""] = listSource(root).keptBack;
  expect(name.startsWith(kept) && kept !== "").toBe(true);
  // A line that asks for it sends it.
  writeFileSync(path.join(root, ".spryignore"), `!${kept}\n`);
  expect(sent(root)).toEqual([".spryignore", "handler.js", name].sort());
});

test.each<[what: string, content: string]>([
  ["a private key", key],
  ["a private key after empty lines and a mark", `\uFEFF\n\n${key}`],
  ["a key of OpenSSH", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n"],
  ["an encrypted key of PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"],
  ["a key of PuTTY", "PuTTY-User-Key-File-3: ssh-ed25519\n"],
  ["a certificate with its key", certificate + key],
  ["what openssl makes of a .p12", `Bag Attributes\n    friendlyName: x\n${key}`],
  ["the key of a service account", '{\n  "type": "service_account",\n  "project_id": "x"\n}\n'],
])("%s stays here under any name", (_what, content) => {
  const root = directory({ "handler.js": "", "certs/data.txt": content });
  expect(sent(root)).toEqual(["handler.js"]);
  expect(listSource(root).keptBack).toEqual(["certs/data.txt"]);
});

test.each<[name: string, content: string]>([
  ["ca.pem", certificate],
  ["public.pem", "-----BEGIN PUBLIC KEY-----\nMIIB\n"],
  ["chain.crt", certificate + certificate],
  [".env.example", "TOKEN="],
  ["example.env", "TOKEN="],
  ["environment.js", ""],
  ["keys.js", `export const test = \`${key}\`;\n`],
  ["service.json", "{}"],
  ["venv.js", ""],
])("%s is sent", (name, content) => {
  const root = directory({ "handler.js": "", [name]: content });
  expect(sent(root)).toEqual(["handler.js", name].sort());
});

test("what editors, tools and systems leave behind is neither sent nor named", () => {
  const names = [
    ".idea/a.xml",
    ".vscode/a.json",
    ".handler.js.swp",
    "handler.js~",
    "#handler.js#",
    "4913",
  ];
  const tools = [
    ".pytest_cache/a",
    ".mypy_cache/a",
    ".ruff_cache/a",
    ".coverage",
    ".coverage.host.1",
    "a.pyc",
  ];
  const others = [
    "npm-debug.log",
    "Thumbs.db",
    ".DS_Store",
    "._handler.js",
    "env/pyvenv.cfg",
    "env/lib/a.py",
    "a.tsbuildinfo",
  ];
  const all = [...names, ...tools, ...others].map((name) => [name, "x"] as const);
  const root = directory({ "handler.js": "", ...Object.fromEntries(all) });
  symlinkSync("user@host.1:2", path.join(root, ".#handler.js"));
  symlinkSync("/usr/bin/python3", path.join(root, "env/python"));
  expect(listSource(root)).toMatchObject({ files: [{ path: "handler.js" }], keptBack: [] });
});

test("what stops a deployment does not stop a directory that is only run", () => {
  const root = directory({ "handler.js": "" });
  symlinkSync("../out", path.join(root, "bazel-out"));
  expect(() => listSource(root)).toThrow("bazel-out is a symbolic link out of the directory");
  const { files, problem } = listPresent(root);
  expect(files.map((file) => file.path)).toEqual(["handler.js"]);
  expect(problem?.message).toContain("bazel-out");
});

test.each<[rule: string, handler: string, listed: string[]]>([
  ["dist/", "dist/index.js", ["build/out/main.js", "dist/index.js", "dist/lib/a.js"]],
  ["dist/*", "dist/index.js", ["build/out/main.js", "dist/index.js", "dist/lib/a.js"]],
  ["*.js", "dist/index.js", ["dist/index.js", "dist/lib/a.js"]],
  ["build", "build/out/main.js", ["build/out/main.js", "dist/index.js", "dist/lib/a.js"]],
])(
  "with the rule %s the handler %s is sent with its folder, and a line",
  (rule, handler, listed) => {
    const files = {
      "dist/index.js": "",
      "dist/lib/a.js": "",
      "build/out/main.js": "",
      "build/b.txt": "",
    };
    const root = directory({ ...files, "dist/prod.env": "x", ".gitignore": `${rule}\n` });
    const found = listSource(root, { handler });
    const names = found.files.map((file) => file.path);
    expect(names.filter((name) => name.endsWith(".js"))).toEqual(listed);
    expect(names).not.toContain("dist/prod.env");
    expect(found.remark).toBe(
      `${path.dirname(handler)}/ is sent although .gitignore leaves it out: the handler is ${handler}`,
    );
  },
);

test("a .spryignore that is a link is followed, and one that cannot be read is refused", () => {
  const root = directory({ "fn/handler.js": "", "fn/secret.txt": "", shared: "secret.txt\n" });
  symlinkSync("../shared", path.join(root, "fn/.spryignore"));
  expect(sent(path.join(root, "fn"))).toEqual(["handler.js"]);
  const other = directory({ "handler.js": "", "secret.txt": "" });
  symlinkSync("missing", path.join(other, ".spryignore"));
  expect(() => sent(other)).toThrow(".spryignore cannot be read");
});

test(".spryignore is read instead of every .gitignore and of info/exclude", () => {
  const rules = {
    ".gitignore": "a.js",
    "lib/.gitignore": "!b.js\nc.js",
    ".git/info/exclude": "d.js",
  };
  const files = { "a.js": "", "lib/b.js": "", "lib/c.js": "", "d.js": "", ".git/HEAD": "" };
  const root = directory({ ...rules, ...files });
  const without = [".gitignore", "lib/.gitignore", "lib/b.js"];
  expect(sent(root)).toEqual(without);
  writeFileSync(path.join(root, ".spryignore"), "b.js\n");
  expect(sent(root)).toEqual([
    ".gitignore",
    ".spryignore",
    "a.js",
    "d.js",
    "lib/.gitignore",
    "lib/c.js",
  ]);
});
