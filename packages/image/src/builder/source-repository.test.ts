import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { repositoryFiles, takeRepository } from "./source-repository.ts";

let home = "";
beforeEach(() => (home = mkdtempSync(join(tmpdir(), "repository-"))));
afterEach(() => rmSync(home, { recursive: true }));

const around = repositoryFiles({ folder: "fn" }, [{ path: "shared/index.js", content: "x" }]);
const files = [{ path: "handler.js", content: "" }, ...around].map((file) => ({
  path: file.path,
  content: Buffer.from("content" in file ? file.content : ""),
  mode: 0o644,
}));

function expectHandover(): void {
  expect(readFileSync(join(home, "handover/monorepo/shared/index.js"), "utf8")).toBe("x");
  expect(readFileSync(join(home, "handover/source.json"), "utf8")).toBe(
    '{"monorepo":{"folder":"fn"}}',
  );
}

test("what is around a source in memory is written to the handover, and leaves the source", () => {
  const own = takeRepository(join(home, "handover"), "", files);
  expect(own?.map(({ path }) => path)).toEqual(["handler.js"]);
  expectHandover();
});

test("and what is around one on the disk, also when a container is started again", () => {
  mkdirSync(join(home, "handover"));
  for (const { path, content } of files) {
    mkdirSync(dirname(join(home, "source", path)), { recursive: true });
    writeFileSync(join(home, "source", path), content);
  }
  for (let round = 0; round < 2; round++)
    expect(takeRepository(join(home, "handover"), join(home, "source"), undefined)).toBe(undefined);
  expectHandover();
  expect(existsSync(join(home, "source/.spry-repository"))).toBe(false);
});

test.each([".spry-repository", ".spry-repository/files", ".spry-repository/files/shared"])(
  "a link in it is refused, as it could lead to the builder's credentials: %s",
  (link) => {
    const source = join(home, "source");
    mkdirSync(join(home, "handover"));
    mkdirSync(join(home, "config/files/shared"), { recursive: true });
    writeFileSync(join(home, "config/source.json"), "{}");
    mkdirSync(dirname(join(source, link)), { recursive: true });
    symlinkSync(join(home, "config"), join(source, link));
    if (link !== ".spry-repository")
      writeFileSync(join(source, ".spry-repository/source.json"), "{}");
    expect(() => takeRepository(join(home, "handover"), source, undefined)).toThrow(
      "source: .spry-repository may have files and folders only",
    );
  },
);

test("a source that stands alone stays as it is", () => {
  const own = files.slice(0, 1);
  expect(takeRepository(join(home, "handover"), "", own)).toBe(own);
  expect(existsSync(join(home, "handover"))).toBe(false);
});
