/** Builds of Python Functions with uv on the path: the same layers as pip's, or else pip's. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { buildFunctionImage, type BuildOptions } from "../../index.ts";
import { given } from "../../testing/build.ts";
import { pythonOnThisMachine, startPythonIndex } from "../../testing/python-index.ts";
import { sourceDistribution, steadySource } from "../../testing/python-sources.ts";
import { temporaryDirectory } from "../../testing/registry.ts";
import { installUv } from "../../testing/uv.ts";
import { type Wheel } from "../../testing/wheels.ts";
import { withoutLogins } from "../secrets.ts";
import { messageOf, UserError } from "../user-error.ts";

// Installers run here, at the same time as the rest of the tests.
vi.setConfig({ testTimeout: 240_000 });

const version = pythonOnThisMachine();
const place = mkdtempSync(join(tmpdir(), "spry-uv-"));
const uv = version ? installUv(place) : undefined;
afterAll(() => rmSync(place, { recursive: true, force: true }));
afterEach(() => void vi.unstubAllEnvs());

const module = (name: string, text = "pass\n", more: Partial<Wheel> = {}): Wheel => ({
  name,
  version: "1.0",
  files: { [`${name}.py`]: text },
  ...more,
});

/** Something of everything that a wheel can bring. */
const data = "everything-1.0.data";
const everything = module("everything", "", {
  files: {
    "everything/__init__.py": "x = 1\n",
    "everything/run.sh": "#!/bin/sh\n",
    [`${data}/data/share/everything/d.txt`]: "d",
    [`${data}/headers/h.h`]: "h",
    [`${data}/scripts/s`]: "#!python\n",
    [`${data}/purelib/everything_pure.py`]: "p = 1\n",
    [`${data}/platlib/everything_platform.py`]: "p = 1\n",
    "everything-1.0.dist-info/entry_points.txt": "[console_scripts]\neverything = everything:x\n",
  },
  metadata:
    'Requires-Dist: plain\nRequires-Dist: greeting; extra == "polite"\nProvides-Extra: polite\n',
  executable: ["everything/run.sh"],
});

const wheels = [
  everything,
  module("plain"),
  // The newest of the one excludes the newest of the other.
  module("beside", "old\n"),
  module("beside", "new\n", { version: "2.0" }),
  module("choosy", "old\n"),
  module("choosy", "new\n", { version: "2.0", metadata: "Requires-Dist: beside<2\n" }),
  module("first", "", { files: { "shared/__init__.py": "first\n" } }),
  module("second", "", { files: { "shared/__init__.py": "second\n" } }),
  module("early", "", { metadata: "Requires-Dist: plain>=1.0rc1\n" }),
];

async function givenRequirements(text: string, { isPublic = false } = {}) {
  const sources = { homemade: sourceDistribution("homemade", steadySource("homemade")) };
  const login = isPublic ? undefined : "user:secret-token";
  const { pipConfig } = await startPythonIndex({ ...(login && { login }), wheels, sources });
  if (isPublic) writeFileSync(pipConfig, withoutLogins(readFileSync(pipConfig, "utf8")));
  const files = { "handler.py": "", "requirements.txt": text };
  const runtime = `python${version?.replace(".", "")}`;
  return { ...(await given(files, { pipConfig, runtime })), pipConfig };
}

function withUv(): void {
  vi.stubEnv("PATH", `${uv}${delimiter}${process.env["PATH"]}`);
}

/** A setting that changes nothing here, and that uv has no equivalent of. */
function withPip(): void {
  vi.stubEnv("PIP_PREFER_BINARY", "1");
}

/** The image of a build that shares nothing with others. */
async function imageOf(build: BuildOptions, cache: string): Promise<string> {
  const elsewhere = { dependencyCache: `${build.dependencyCache}-${cache}` };
  const scratch = temporaryDirectory();
  return (await buildFunctionImage({ ...build, ...elsewhere, scratch })).image;
}

const notForUv = (why: string) => `installing with pip, not with uv: ${why}`;

describe.skipIf(!uv)("a build with uv (which is got from the package index)", () => {
  const same: { what: string; text: string; isPublic?: boolean }[] = [
    { what: "everything that a wheel can bring", text: "everything\n" },
    {
      what: "extras and markers",
      text: 'everything[polite]>=1 ; python_version > "3"\n',
      isPublic: true,
    },
    { what: "a package built from source", text: "homemade\n", isPublic: true },
  ];
  test.each(same)("gives the same image as with pip: $what", async ({ text, ...options }) => {
    const { build, lines } = await givenRequirements(text, options);
    withUv();
    const image = await imageOf(build, "uv");
    expect(lines).toContain("installed with uv");
    withPip();
    expect(await imageOf(build, "pip")).toBe(image);
    expect(lines).toContain(notForUv("uv has no equivalent of pip's setting prefer-binary"));
    expect(lines.join("\n")).not.toContain("secret-token");
  });

  /** [what pip might do otherwise, requirements.txt, words of the log] */
  const different: [string, string, string][] = [
    [
      "newest versions exclude each other",
      "beside\nchoosy\n",
      "the newest versions conflict, and pip decides which one to lower",
    ],
    [
      "packages have the same file",
      "second\nfirst\n",
      "shared/__init__.py is in two packages, whose order is pip's",
    ],
    [
      "a package wants a version before a release",
      "early\n",
      "early-1.0 requires a pre-release version",
    ],
  ];
  test.each(different)("leaves it to pip where %s", async (_, text, words) => {
    const { build, lines } = await givenRequirements(text);
    withUv();
    await buildFunctionImage(build);
    expect(lines).toContain(notForUv(words));
  });

  test("tells of a mistake in pip's words", async () => {
    const { build } = await givenRequirements("plain==9\n");
    withUv();
    const failure = await buildFunctionImage(build).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(messageOf(failure)).toMatch(/from versions: 1\.0/);
  });
});
