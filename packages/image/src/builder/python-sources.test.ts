/** Python packages that have to be built from source, from an index with a login: their code runs, and never sees it. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { buildFunctionImage, pullImage } from "../index.ts";
import { given } from "../testing/build.ts";
import { pythonOnThisMachine, startPythonIndex } from "../testing/python-index.ts";
import { curiousSource, sourceDistribution } from "../testing/python-sources.ts";
import { temporaryDirectory } from "../testing/registry.ts";
import { messageOf, UserError } from "./user-error.ts";

const version = pythonOnThisMachine();
const secret = "secret-token";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 240_000 });

async function givenPrivate(sources: Record<string, Buffer>, requirements: string) {
  const { pipConfig } = await startPythonIndex({ login: `user:${secret}`, sources });
  return given(
    { "handler.py": "", "requirements.txt": requirements },
    { pipConfig, runtime: `python${version?.replace(".", "")}` },
  );
}

describe.skipIf(!version)("a source distribution from an index with a login", () => {
  test("is built where the login is not, with what it needs for that and later", async () => {
    const { build, client, lines } = await givenPrivate(
      {
        homemade: sourceDistribution(
          "homemade",
          curiousSource("homemade", {
            requires: '"toolkit"',
            imports: "import toolkit",
            statement: "Requires-Dist: greeting\n",
          }),
        ),
        toolkit: sourceDistribution("toolkit", curiousSource("toolkit")),
      },
      "homemade==1.0\n",
    );
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    const packages = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
    const seen = readFileSync(join(packages, "homemade.py"), "utf8");
    expect(seen).toContain("index-url");
    // What is unpacked and compiled counts to what an installation may have on disk.
    expect(seen).toContain(`${build.scratch}/home/tmp/pip-`);
    expect(seen + lines.join("\n")).not.toContain(secret);
    expect(existsSync(join(packages, "greeting/__init__.py"))).toBe(true);
    expect(existsSync(join(packages, "toolkit.py"))).toBe(false);
  });

  /** [what the author may write, requirements.txt] */
  const openings: [string, (index: string) => string][] = [
    ["--no-binary", () => "--no-binary :all:\ncurious\n"],
    ["a URL", (index) => `greeting\ncurious @ ${index}/curious-1.0.tar.gz\n`],
  ];
  test.each(openings)("asked for with %s is built where the login is not", async (_, text) => {
    const { pipConfig, address } = await startPythonIndex({
      login: `user:${secret}`,
      sources: { curious: sourceDistribution("curious", curiousSource("curious")) },
    });
    const requirements = text(`http://user:${secret}@${address}`);
    const { build, client } = await given(
      { "handler.py": "", "requirements.txt": requirements },
      { pipConfig, runtime: `python${version?.replace(".", "")}` },
    );
    const dir = join(temporaryDirectory(), "image");
    await pullImage(client, (await buildFunctionImage(build)).image, dir);
    const packages = join(dir, `usr/src/app/function/lib.python${version}/site-packages`);
    const seen = readFileSync(join(packages, "curious.py"), "utf8");
    expect(seen).toContain("index-url");
    expect(seen).not.toContain(secret);
  });

  test("that does not say what it needs is refused, with the way out", async () => {
    const { "PKG-INFO": _, ...silent } = curiousSource("silent");
    const { build } = await givenPrivate(
      { silent: sourceDistribution("silent", silent) },
      "silent\n",
    );
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(
      /note: .*Add a wheel.*silent.* does not state what it needs/s,
    );
    expect(messageOf(failure)).not.toContain(secret);
  });
});
