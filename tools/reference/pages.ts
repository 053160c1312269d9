/** The pages that are made from the code, by their files. */
import { cliReference } from "./cli-reference.ts";
import { functionReference } from "./function-reference.ts";
import { spryYaml } from "./spry-yaml.ts";

export const generatedPages = (): Record<string, string> => ({
  "docs/cli-reference.md": cliReference(),
  "docs/function-reference.md": functionReference(),
  "docs/spry-yaml.md": spryYaml(),
});
