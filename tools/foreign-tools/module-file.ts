import { execFileSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

/**
 * Copies a module's go.mod and go.sum for `-modfile`, with a released module in the place of the folder that go.mod names and
 * that the module's archive lacks. They are removed with the value. Throws when Go fails. Sums are those of Go's checksum database.
 */
export function moduleFileWith(
  released: string,
  moduleDirectory: string,
): Disposable & { path: string } {
  const directory = mkdtempSync(path.join(tmpdir(), "go-module-"));
  const copy = (name: string) => {
    const file = path.join(directory, name);
    // The archive's own files are read-only, and a copy of them would be, too.
    writeFileSync(file, readFileSync(path.join(moduleDirectory, name)));
    return file;
  };
  const moduleFile = copy("go.mod");
  const sums = copy("go.sum");
  const [name = "", version] = released.split("@");
  execFileSync("go", ["mod", "edit", `-dropreplace=${name}`, moduleFile]);
  const download = ["mod", "download", "-json", released];
  const described = execFileSync("go", download, { cwd: directory, encoding: "utf8" });
  const { Sum, GoModSum } = JSON.parse(described) as { Sum: string; GoModSum: string };
  appendFileSync(sums, `${name} ${version} ${Sum}\n${name} ${version}/go.mod ${GoModSum}\n`);
  return {
    path: moduleFile,
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}
