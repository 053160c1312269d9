/** The browser-safe faces of rooms can be bundled for a browser, and use nothing that only Node.js has. */
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { build } from "esbuild";
import { expect, test } from "vitest";

const root = path.resolve(import.meta.dirname, "..");
const faces = globSync("packages/*/src/browser.ts", { cwd: root });

test("kube and function have one", () => {
  expect(faces.sort()).toEqual([
    "packages/function/src/browser.ts",
    "packages/kube/src/browser.ts",
  ]);
});

test.each(faces)("%s", async (face) => {
  const manifest = JSON.parse(readFileSync(path.join(root, face, "../../package.json"), "utf8"));
  expect(manifest.exports["./browser"]).toBe("./src/browser.ts");
  // Whatever it imports of Node.js is an error here.
  const { outputFiles } = await build({
    entryPoints: [path.join(root, face)],
    bundle: true,
    platform: "browser",
    format: "esm",
    write: false,
    logLevel: "silent",
  });
  const text = outputFiles[0]?.text ?? "";
  expect(text.match(/\b(?:Buffer|process|require|__dirname|setImmediate)\b[.(]/g)).toBeNull();
});
