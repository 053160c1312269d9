import { spawnSync } from "node:child_process";
import {
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { temporaryDirectory } from "../../testing.ts";
import { VolumeParts } from "./volume-parts.ts";

const why =
  process.platform === "linux" && process.getuid?.() === 0 ? "" : " (skipped: needs root)";

/** A volume with a directory and a file, of which a container is to get parts. */
function volumeParts() {
  const podDir = realpathSync(temporaryDirectory());
  const bundle = path.join(podDir, "bundle");
  const volume = path.join(podDir, "volumes", "scratch");
  mkdirSync(path.join(volume, "dir"), { recursive: true });
  writeFileSync(path.join(volume, "dir", "text"), "the Pod's");
  const elsewhere = path.join(realpathSync(temporaryDirectory()), "text");
  writeFileSync(elsewhere, "the machine's");
  const parts = new VolumeParts(podDir, bundle);
  onTestFinished(() => parts.close());
  const errors = path.join(podDir, "errors");
  /** What a runtime would find at these places. */
  const read = (...files: string[]) => {
    const [program = "", ...args] = parts.command(["cat", ...files], errors);
    const { status, stdout } = spawnSync(program, args, { encoding: "utf8" });
    const error = status === 0 ? "" : readFileSync(errors, "utf8");
    return { status, stdout, error };
  };
  return { parts, volume, elsewhere, podDir, read };
}

describe.skipIf(why !== "")(`parts of volumes${why}`, () => {
  test("a directory and a file are what the runtime gets, and no mount of the machine", () => {
    const { parts, volume, podDir, read } = volumeParts();
    const dir = parts.sourceOf(path.join(volume, "dir"));
    const file = parts.sourceOf(path.join(volume, "dir", "text"));
    expect(read(path.join(dir, "text"), file)).toMatchObject({ stdout: "the Pod'sthe Pod's" });
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(podDir);
  });

  test("a whole volume, and what no container can exchange, keep their names", () => {
    const { parts, volume, podDir } = volumeParts();
    mkdirSync(path.join(podDir, "containers"));
    for (const file of [volume, path.join(podDir, "containers")])
      expect(parts.sourceOf(file)).toBe(file);
    expect(parts.command(["runc"], "")).toEqual(["runc"]);
  });

  test.each<[string, (volume: string, elsewhere: string) => void]>([
    [
      "the directory for a link",
      (volume, elsewhere) => {
        renameSync(path.join(volume, "dir"), path.join(volume, "old"));
        symlinkSync(path.dirname(elsewhere), path.join(volume, "dir"));
      },
    ],
    [
      "the file for a link",
      (volume, elsewhere) => {
        rmSync(path.join(volume, "dir", "text"));
        symlinkSync(elsewhere, path.join(volume, "dir", "text"));
      },
    ],
    ["the file for nothing", (volume) => rmSync(path.join(volume, "dir", "text"))],
  ])(
    "exchanged between the check and the bind, %s: the container is not started",
    (_, exchange) => {
      const { parts, volume, elsewhere, read } = volumeParts();
      const file = parts.sourceOf(path.join(volume, "dir", "text"));
      exchange(volume, elsewhere);
      const { status, stdout, error } = read(file);
      expect({ status, stdout }).toEqual({ status: 125, stdout: "" });
      expect(JSON.parse(error)).toMatchObject({
        level: "error",
        msg: expect.stringContaining("another container has replaced or removed it") as string,
      });
    },
  );
});
