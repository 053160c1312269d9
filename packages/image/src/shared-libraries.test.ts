import path from "node:path";
import { expect, test } from "vitest";
import { librariesLoadedLater, sharedLibrariesOf } from "./shared-libraries.ts";

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
