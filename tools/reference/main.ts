/** Program: `npm run reference`. Writes the pages of docs/ that are made from the code. */
import { writeFileSync } from "node:fs";
import path from "node:path";
import { generatedPages } from "./pages.ts";

const root = path.resolve(import.meta.dirname, "../..");
for (const [file, text] of Object.entries(generatedPages())) {
  writeFileSync(path.join(root, file), text);
  console.log(file);
}
