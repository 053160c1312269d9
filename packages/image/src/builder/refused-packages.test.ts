/** Packages that a build cannot install are refused before anything runs, by name. */
import { expect, test } from "vitest";
import { planInstallation } from "./plan-installation.ts";

const plan = (runtime: string, files: Record<string, string>) =>
  planInstallation({
    runtime,
    files: Object.entries(files).map(([path, text]) => ({
      path,
      content: Buffer.from(text),
      mode: 0o644,
    })),
  });

test.each([
  ["./libs/x", "./libs/x"],
  ["-e ./libs/x", "./libs/x"],
  ["--editable=../x", "../x"],
  ["-e .", "."],
  ["x @ file:///libs/x", "file:///libs/x"],
  ["./vendor/x-1.0-py3-none-any.whl", "./vendor/x-1.0-py3-none-any.whl"],
])("requirements.txt: %s", (line, named) => {
  const files = { "requirements.txt": `idna\n${line}\n`, "libs/x/pyproject.toml": "" };
  expect(() => plan("python312", files)).toThrow(
    `requirements.txt: ${named} is a package in the directory, which is not installed`,
  );
});

test.each([
  "idna",
  "-e git+https://example.com/x.git#egg=x",
  "x @ https://example.com/x.whl",
  "--index-url https://e.example/",
])("requirements.txt: %s is not refused", (line) => {
  expect(plan("python312", { "requirements.txt": `${line}\nidna\n` })).toBeDefined();
});

test.each(["workspace:*", "workspace:^1", "catalog:", "portal:../x", "patch:x@1#./x.patch"])(
  "package.json: %s",
  (version) => {
    const files = { "package.json": JSON.stringify({ dependencies: { shared: version } }) };
    expect(() => plan("nodejs24", files)).toThrow(
      `package.json: dependencies: npm cannot install shared at "${version}"`,
    );
  },
);
