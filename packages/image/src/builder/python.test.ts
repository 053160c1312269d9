/** Builds of Python Functions with this machine's own Python and pip, against an index on this machine. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isFullSuite } from "@spry/test-kit";
import { describe, expect, test, vi } from "vitest";
import { buildFunctionImage, type BuildOptions, pullImage } from "../index.ts";
import { type Files, given as givenBuild, write } from "../testing/build.ts";
import { pythonOnThisMachine, startPythonIndex } from "../testing/python-index.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { meaningfulPipLines } from "./pip.ts";
import { messageOf, UserError } from "./user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 120_000 });

const version = pythonOnThisMachine();

/** As for Node.js, with a Python runtime. */
const given = (files: Files, options: Partial<BuildOptions> = {}) =>
  givenBuild(files, { runtime: `python${version?.replace(".", "")}`, ...options });

const handler = "import greeting\ndef main(event, context):\n    return greeting.greet()\n";
const withGreeting = { "handler.py": handler, "requirements.txt": "# ours\ngreeting ~= 1.2\n" };

/** [what is wrong, requirements.txt, words of the response]; the first one stands for all of them in `npm test`. */
const mistakes: [string, string, RegExp][] = [
  [
    "a package that does not exist",
    "no-such-package",
    /No matching distribution.*no-such-package/s,
  ],
  ["a version that does not exist", "greeting==9", /from versions: 1\.2\.3/],
  ["a line that is not a requirement", "a b c", /Invalid requirement: 'a b c'.*line 1/],
  ["a file that is not there", "-r other.txt", /No such file or directory: '.*other\.txt'/],
];

describe.skipIf(!version)("a build of a Python Function", () => {
  test("without requirements puts the source alone on the runtime image", async () => {
    const { build, client } = await given({
      "handler.py": "def main(event, context): return 1",
      "requirements.txt": "# nothing yet\n",
      "pip.conf": "[global]\nindex-url = https://user:secret@index.example\n",
      "__pycache__/handler.cpython-312.pyc": "",
    });
    const dir = join(temporaryDirectory(), "image");
    const pulled = await pullImage(client, (await buildFunctionImage(build)).image, dir);
    expect(pulled.manifest.layers.length).toBe(2);
    const files = readdirSync(join(dir, "usr/src/app/function")).sort();
    expect(files).toEqual(["handler.py", "requirements.txt"]);
  });

  test("installs where the runtime looks, compiled, without what only this machine knows", async () => {
    const { pipConfig } = await startPythonIndex();
    const { build, client } = await given(withGreeting, { pipConfig });
    const dir = join(temporaryDirectory(), "image");
    const pulled = await pullImage(client, (await buildFunctionImage(build)).image, dir);
    expect(pulled.manifest.layers.length).toBe(3);
    const packages = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
    expect(readdirSync(packages).sort()).toEqual(["greeting", "greeting-1.2.3.dist-info"]);
    const probe = "import greeting; print(greeting.greet(), greeting.__cached__)";
    const env = { ...process.env, PYTHONPATH: packages, PYTHONDONTWRITEBYTECODE: "1" };
    const [said, cached] = execFileSync("python3", ["-c", probe], { env }).toString().split(" ");
    expect(said).toBe("hello");
    expect(existsSync(cached?.trim() ?? "")).toBe(true);
    const everything = execFileSync("sh", ["-c", `cat $(find '${dir}' -type f)`]).toString();
    const { manifest, config } = pulled;
    for (const own of ["secret-token", build.scratch, "127.0.0.1"])
      expect(everything + JSON.stringify({ manifest, config })).not.toContain(own);
  });

  test("installs dependencies once: an edit of code or comments installs nothing", async () => {
    const { pipConfig, requests } = await startPythonIndex();
    const { build } = await given(withGreeting, { pipConfig });
    await buildFunctionImage(build);
    const asked = requests();
    write(build.source, {
      "handler.py": `${handler}# edited\n`,
      "requirements.txt": "greeting ~= 1.2  # edited\n",
    });
    const edited = await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
    expect(edited.sentBytes).toBeLessThan(2000);
    expect(requests()).toBe(asked);
  });

  test("follows the files that requirements.txt includes", async () => {
    const { pipConfig, requests } = await startPythonIndex();
    const { build } = await given(
      { ...withGreeting, "requirements.txt": "-r more/base.txt\n", "more/base.txt": "greeting\n" },
      { pipConfig },
    );
    await buildFunctionImage(build);
    const asked = requests();
    write(build.source, { "more/base.txt": "greeting==1.2.3\n" });
    await buildFunctionImage({ ...build, scratch: temporaryDirectory() });
    expect(requests()).toBeGreaterThan(asked);
  });

  test.each(isFullSuite ? mistakes : mistakes.slice(0, 1))(
    "tells the author of %s, in the installer's words",
    async (_, text, words) => {
      const { pipConfig } = await startPythonIndex();
      const files = { "handler.py": handler, "requirements.txt": `${text}\n` };
      const { build } = await given(files, { pipConfig });
      const failure = await buildFunctionImage(build).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(UserError);
      expect(messageOf(failure)).toMatch(
        /^installing dependencies: pip (?:download|install) ended with \d\n/,
      );
      expect(messageOf(failure)).toMatch(words);
      expect(messageOf(failure)).not.toMatch(/secret-token|ERROR:|notice/);
    },
  );

  test("does not blame the author for an index that cannot be reached", async () => {
    const pipConfig = join(temporaryDirectory(), "pip.conf");
    writeFileSync(pipConfig, "[global]\nindex-url = http://127.0.0.1:1/simple\nfind-links =\n");
    const { build } = await given(withGreeting, { pipConfig });
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).not.toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(/127\.0\.0\.1:1\/simple\n.*Connection refused/);
    expect(messageOf(failure)).not.toMatch(/No matching distribution/);
  });
});

test("of what pip says, the lines with the cause are shown", () => {
  const output = [
    "  error: subprocess-exited-with-error",
    "  × Getting requirements to build wheel did not run successfully.",
    "  note: This error originates from a subprocess, and is likely not a problem with pip.",
    "ERROR: Failed to build https://user:secret@index.example/x.tar.gz",
    "[notice] A new release of pip is available",
    "Collecting urllib3<1 (from -r requirements.txt (line 2))",
    "  Downloading urllib3-0.3.tar.gz (10 kB)",
    "  Preparing metadata (pyproject.toml): finished with status 'done'",
    "The conflict is caused by:",
    "    The user requested urllib3<1",
    "",
  ].join("\n");
  expect(meaningfulPipLines(output).split("\n")).toEqual([
    "  error: subprocess-exited-with-error",
    "  × Getting requirements to build wheel did not run successfully.",
    "Failed to build https://index.example/x.tar.gz",
    "The conflict is caused by:",
    "    The user requested urllib3<1",
  ]);
});

test("pip's warnings are not in front of its error, and are shown where nothing else is", () => {
  const warnings = ["WARNING: Location '/x' is ignored: it is not there.", "DEPRECATION: Old."];
  const error = "ERROR: No matching distribution found for no-such";
  expect(meaningfulPipLines([...warnings, error].join("\n"))).toBe(
    "No matching distribution found for no-such",
  );
  expect(meaningfulPipLines(warnings.join("\n"))).toBe(warnings.join("\n"));
});

describe.skipIf(!version)("a build with a pyproject.toml", () => {
  const project = (dependencies: string) => `[project]\nname = "x"\nversion = "1"\n${dependencies}`;
  const cases: { name: string; files: Files; packages: string[] }[] = [
    { name: "its dependencies", files: {}, packages: ["greeting"] },
    {
      name: "the versions of its lock",
      files: { "uv.lock": '[[package]]\nname = "greeting"\nversion = "1.2.3"\n' },
      packages: ["greeting"],
    },
    {
      name: "a requirements.txt before it",
      files: { "requirements.txt": "greeting==1.2.3\n", "pyproject.toml": "not toml" },
      packages: ["greeting"],
    },
    { name: "no dependencies", files: { "pyproject.toml": project("") }, packages: [] },
  ];
  test.each(cases)("heeds $name", async ({ files, packages }) => {
    const { pipConfig } = await startPythonIndex();
    const own = { "pyproject.toml": project('dependencies = ["greeting>=1"]\n') };
    const { build, client } = await given({ "handler.py": "", ...own, ...files }, { pipConfig });
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    const home = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
    const found = existsSync(home) ? readdirSync(home) : [];
    expect(found.filter((name) => !name.includes("."))).toEqual(packages);
  });

  test.each([
    { text: "[project", why: /^pyproject\.toml: / },
    { text: project("dependencies = [1]"), why: /expected a list of requirements/ },
    {
      text: '[tool.poetry.dependencies]\npython = "^3.12"\ngreeting = "^1"\n',
      why: /list them in \[project\] dependencies/,
    },
    {
      text: project('dependencies = ["greeting>=1"]'),
      lock: '[[package]]\nname = "greeting"\nversion = "1.0.0"\n',
      why: /Cannot install greeting.*The conflict is caused by:.*\(constraint\) greeting==1\.0\.0/s,
    },
  ])("tells the author of $why", async ({ text, lock, why }) => {
    const { pipConfig } = await startPythonIndex();
    const files: Files = { "handler.py": "", "pyproject.toml": text };
    if (lock) files["poetry.lock"] = lock;
    const { build } = await given(files, { pipConfig });
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(messageOf(failure)).toMatch(why);
    expect(failure).toBeInstanceOf(UserError);
  });
});
