import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import path from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { temporaryDirectory } from "../testing.ts";
import { LeadsOut, makeBeneath, openBeneath } from "./open-beneath.ts";

let volume = "";
let outside = "";
beforeEach(() => {
  [volume, outside] = [realpathSync(temporaryDirectory()), realpathSync(temporaryDirectory())] as [
    string,
    string,
  ];
  mkdirSync(path.join(volume, "there"));
  mkdirSync(path.join(volume, "..stamp"));
  writeFileSync(path.join(volume, "..stamp", "key"), "value");
  symlinkSync("..stamp", path.join(volume, "..data"));
  symlinkSync("..data/key", path.join(volume, "key"));
  symlinkSync(outside, path.join(volume, "out"));
  symlinkSync(path.join(outside, "missing"), path.join(volume, "nowhere"));
});

describe("missing directories of a subPath", () => {
  test.each(["new", "new/deeper", "there", "there/new", "key", "..data/new"])(
    "made below the volume: %s",
    (relative) => {
      makeBeneath(volume, relative);
      expect(realpathSync(path.join(volume, relative)).startsWith(`${volume}/`)).toBe(true);
    },
  );

  test.each(["out", "out/new", "nowhere", "nowhere/new"])(
    "refused, and nothing made elsewhere: %s",
    (relative) => {
      expect(() => makeBeneath(volume, relative)).toThrow(LeadsOut);
      expect(readdirSync(outside)).toEqual([]);
    },
  );

  test("have the volume's own mode, whatever the umask is", () => {
    const former = process.umask(0o077);
    try {
      makeBeneath(volume, "new/deeper");
    } finally {
      process.umask(former);
    }
    const modeOf = (file: string) => statSync(file).mode & 0o7777;
    for (const name of ["new", "new/deeper"])
      expect(modeOf(path.join(volume, name))).toBe(modeOf(volume));
  });
});

describe.skipIf(process.platform !== "linux")("a place that is held open", () => {
  test.each(["key", "..data/key"])("a file behind the volume's own links: %s", (name) => {
    const place = openBeneath(volume, path.join(volume, name));
    expect(readFileSync(place.path, "utf8")).toBe("value");
    place.close();
  });

  test("the volume itself", () => {
    const place = openBeneath(volume, volume);
    expect(readdirSync(place.path)).toContain("there");
    place.close();
  });

  test("what leads elsewhere is refused", () => {
    expect(() => openBeneath(volume, path.join(volume, "out"))).toThrow(LeadsOut);
  });

  test("nothing stays open when something is missing or refused", () => {
    for (const name of ["out", "missing", "there/missing"]) {
      expect(() => openBeneath(volume, path.join(volume, name))).toThrow();
      try {
        makeBeneath(volume, `${name}/a`);
      } catch {
        // Refused.
      }
    }
    expect(openBelow(volume)).toEqual([]);
  });
});

/** What this process has open below a directory. */
function openBelow(dir: string): string[] {
  const files = readdirSync("/proc/self/fd").flatMap((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`);
    } catch {
      return [];
    }
  });
  return files.filter((file) => file === dir || file.startsWith(`${dir}/`));
}
