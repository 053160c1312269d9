import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import {
  librariesLoadedLater,
  sharedLibrariesOf,
  sharedLibrariesOfAll,
} from "./shared-libraries.ts";

test.runIf(process.platform === "linux")(
  "next to a program's own libraries are those that native packages expect of every Linux",
  async () => {
    const libraries = await sharedLibrariesOf(process.execPath);
    const names = librariesLoadedLater(libraries).map((file) => path.basename(file));
    // pydantic's core asks for the first, SAP's hana-client for the second.
    expect(names).toEqual(
      expect.arrayContaining(["libgcc_s.so.1", "librt.so.1", "libstdc++.so.6"]),
    );
  },
);

describe.runIf(process.platform === "linux")("of several programs at once", () => {
  const several = [process.execPath, "/bin/sh", "/usr/bin/env", "/bin/sh"];

  test("the libraries are those that each has by itself", async () => {
    const found = await sharedLibrariesOfAll(several);
    expect([...found.keys()]).toEqual([...new Set(several)]);
    for (const [program, libraries] of found) {
      expect(libraries).toEqual(await sharedLibrariesOf(program));
      expect(libraries.join()).toContain("libc");
    }
  });

  test("one without any does not hide the others', and one that is missing is an error", async () => {
    const script = path.join(mkdtempSync(path.join(tmpdir(), "libraries-")), "script");
    writeFileSync(script, "#!/bin/sh\n", { mode: 0o755 });
    const found = await sharedLibrariesOfAll([script, "/bin/sh"]);
    expect(found.get(script)).toEqual([]);
    expect(found.get("/bin/sh")?.join()).toContain("libc");
    await expect(sharedLibrariesOfAll(["/bin/sh", `${script}.missing`])).rejects.toThrow(
      "No such file",
    );
  });
});
