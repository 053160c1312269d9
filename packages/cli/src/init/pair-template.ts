/** A directory with two Functions, which `spry init --template pair` begins with. */
import { type Runtime, type Template } from "@spry/function";
import { defaultInspectPorts } from "../dev/inspect-ports.ts";
import { configName, configSchema, schemaName } from "../project/schema.ts";
import { vscodeFiles } from "./vscode-files.ts";

/** The dashboard creates one Function at a time: this one is the command's alone. */
export const pairTemplate: Template = {
  name: "pair",
  language: "nodejs",
  isPlain: true,
  description: "two Functions: an API, and a worker that it calls",
  files: {},
};

const api = (
  worker: string,
) => `/** Calls the worker by its name, which is the same on the platform and with \`spry dev\`. */
export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const name = searchParams.get("name") ?? "world";
    const work = await fetch("http://${worker}/", { method: "POST", body: name });
    if (!work.ok) return Response.json({ error: "the worker failed" }, { status: 502 });
    return Response.json({ message: await work.text() });
  },
};
`;

const work = `export default {
  async fetch(request) {
    return new Response(\`\${process.env.GREETING ?? "Hello"}, \${await request.text()}!\`);
  },
};
`;

const apiTest = `import assert from "node:assert/strict";
import test from "node:test";

test("the API answers with what the worker made", async () => {
  const response = await fetch(\`\${process.env.SPRY_URL}?name=you\`);
  assert.deepEqual(await response.json(), { message: "Hello, you!" });
});
`;

/** Its files, by their paths. `name`: of the API; the worker's is made of it. */
export function pairFiles(runtime: Runtime, name: string): Record<string, string> {
  const worker = `${name.slice(0, 56).replace(/-+$/, "")}-worker`;
  const { nodejs: inspectPort } = defaultInspectPorts;
  return {
    [configName]: `# yaml-language-server: $schema=${schemaName}
# What both have; spry dev and spry deploy take both.
runtime: ${runtime.name}
env:
  GREETING: Hello

functions:
  ${name}:
    directory: api
  ${worker}:
    directory: worker
    # scale: { min: 1, max: 3 }
`,
    "api/handler.mjs": api(worker),
    "api/handler.test.mjs": apiTest,
    "worker/handler.mjs": work,
    ".gitignore": "node_modules/\n.env\n.spry/\n",
    ...vscodeFiles([
      { name, language: "nodejs", directory: "api", port: inspectPort },
      { name: worker, language: "nodejs", directory: "worker", port: inspectPort + 1 },
    ]),
    [schemaName]: `${JSON.stringify(configSchema, null, 2)}\n`,
  };
}
