/** npm packages from Git repositories. */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { given, write } from "../testing/build.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { messageOf, UserError } from "./user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const wants = (spec: string) => ({
  "handler.js": "",
  "package.json": JSON.stringify({ dependencies: { made: spec } }),
});

const token = "npm_Zx81Qspectrum48k";

/** Makes a repository of a directory. */
function commit(directory: string): void {
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
      cwd: directory,
    });
  git("init", "--quiet");
  git("add", ".");
  git("commit", "--quiet", "--message=first");
}

test("are made by their own scripts, as npm does it", async () => {
  const repository = write(temporaryDirectory(), {
    "package.json": JSON.stringify({
      name: "made",
      version: "1.0.0",
      scripts: { prepare: `node -e "require('fs').writeFileSync('dist.js','')"` },
    }),
  });
  commit(repository);
  const { build, client } = await given(wants(`git+file://${repository}`));
  const dir = join(temporaryDirectory(), "image");
  await pullImage(client, (await buildFunctionImage(build)).image, dir);
  const files = readdirSync(join(dir, "usr/src/app/function/node_modules/made")).sort();
  expect(files).toEqual(["dist.js", "package.json"]);
});

test("run their scripts only where no login is, whatever their own settings say", async () => {
  const seen = join(temporaryDirectory(), "seen");
  const peek = `const fs = require("fs"); fs.appendFileSync(${JSON.stringify(seen)}, "ran:" + fs.readFileSync(process.env.npm_config_userconfig, "utf8"));`;
  const scripts = Object.fromEntries(
    ["preinstall", "install", "postinstall", "prepare", "prepack", "build"].map((name) => [
      name,
      "node peek.js",
    ]),
  );
  const repository = write(temporaryDirectory(), {
    "package.json": JSON.stringify({ name: "made", version: "1.0.0", scripts }),
    ".npmrc": "ignore-scripts=false\n",
    "peek.js": peek,
  });
  commit(repository);
  const npmConfig = join(
    write(temporaryDirectory(), { npmrc: `//a/:_authToken=${token}\n` }),
    "npmrc",
  );
  const { build } = await given(wants(`git+file://${repository}`), { npmConfig });
  await buildFunctionImage(build);
  expect(readFileSync(seen, "utf8")).toContain("ran:");
  expect(readFileSync(seen, "utf8")).not.toContain(token);
});

test("that want a login are refused, with the ways out", async () => {
  const server = createServer((_, response) =>
    response.writeHead(401, { "www-authenticate": "Basic" }).end(),
  );
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const { build } = await given(wants(`git+http://127.0.0.1:${port}/made.git`));
  const failure = await buildFunctionImage(build).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(UserError);
  expect(messageOf(failure)).toMatch(/no login for the Git repositories of packages.*npm pack/s);
});
