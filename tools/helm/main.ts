/** Program: `npm run chart`. Writes deploy/helm/spry anew. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { version } from "../../packages/cli/src/version.ts";
import { chartFiles } from "./chart.ts";

const dir = path.resolve(import.meta.dirname, "../../deploy/helm/spry");
rmSync(dir, { recursive: true, force: true });
for (const [name, content] of Object.entries(chartFiles(version))) {
  const file = path.join(dir, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
}
console.log(dir);
