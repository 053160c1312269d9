import { mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Platform } from "./platform.ts";
import { complete, templateVariable } from "./platform-template.ts";

/** Of one platform alone: what its processes have, and where they listen. */
const own = /^(node|logs|kubeconfig|endpoints\.json|gateway\..*)$/;

/**
 * Makes the template of `useTemplate` while the first files run; the function that it returns removes it. One for all
 * projects of a run; undefined where it does not pay.
 */
export function offerTemplate(): (() => Promise<void>) | undefined {
  if (process.env[templateVariable]) return undefined;
  // For files that are named it would cost what it saves.
  if (process.argv.some((argument) => argument.endsWith(".test.ts"))) return undefined;
  const folder = mkdtempSync(path.join(tmpdir(), "spry-template-"));
  process.env[templateVariable] = folder;
  // Without it, each platform makes its own.
  const making = make(folder).catch((error: unknown) => console.warn("no template:", error));
  return async () => {
    await making;
    rmSync(folder, { recursive: true, force: true });
  };
}

async function make(folder: string): Promise<void> {
  const dataDir = path.join(folder, "making");
  const platform = new Platform({ dataDir });
  try {
    await platform.start();
  } finally {
    await platform.stop();
  }
  for (const name of readdirSync(dataDir))
    if (own.test(name)) rmSync(path.join(dataDir, name), { recursive: true, force: true });
  renameSync(dataDir, path.join(folder, complete));
}
