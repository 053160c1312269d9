import { dump } from "js-yaml";
import { type Runtime, type Template } from "@spry/function";
import { configName, configSchema, schemaName } from "../project/schema.ts";
import { alone, vscodeFiles } from "./vscode-files.ts";

/** The files of a new directory, by their paths. */
export function filesOf(
  template: Template,
  runtime: Runtime,
  name: string,
): Record<string, string> {
  const own = Object.entries(template.files).map(([file, content]) => [
    file,
    content.replaceAll("{{name}}", name),
  ]);
  const isNode = runtime.language === "nodejs";
  return {
    ...(Object.fromEntries(own) as Record<string, string>),
    ...(isNode
      ? nodeFiles(template, runtime, name)
      : { "requirements.txt": requirements(template) }),
    [configName]: configText(template, runtime, name),
    ".gitignore": isNode ? "node_modules/\n.env\n.spry/\n" : "__pycache__/\n.venv/\n.env\n.spry/\n",
    ...vscodeFiles(alone(name, runtime)),
    [schemaName]: `${JSON.stringify(configSchema, null, 2)}\n`,
  };
}

function configText({ name: kind, schedules }: Template, runtime: Runtime, name: string): string {
  const greets = kind !== "cloudevent" && kind !== "queue" && !schedules;
  const env = greets ? "\nenv:\n  GREETING: Hello\n" : "";
  return `# yaml-language-server: $schema=${schemaName}
name: ${name}
runtime: ${runtime.name}
${env}${schedules ? `\n${dump({ schedules })}` : ""}
# scale: { min: 1, max: 3 }
# profile: S
`;
}

function nodeFiles(template: Template, runtime: Runtime, name: string): Record<string, string> {
  const { dependencies, devDependencies, isPlain } = template;
  const manifest = {
    name,
    private: true,
    type: "module",
    engines: { node: `>=${runtime.interpreter.replace("node@", "")}` },
    scripts: { dev: "spry dev", deploy: "spry deploy", test: "node --test" },
    ...(dependencies && { dependencies }),
    ...(devDependencies && { devDependencies }),
  };
  const compilerOptions = {
    target: "es2024",
    module: "nodenext",
    strict: true,
    noEmit: true,
    // What the runtime can run as it is.
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    types: ["node"],
  };
  return {
    "package.json": `${JSON.stringify(manifest, null, 2)}\n`,
    ...(!isPlain && { "tsconfig.json": `${JSON.stringify({ compilerOptions }, null, 2)}\n` }),
  };
}

const requirements = ({ requirements: lines = [] }: Template): string =>
  lines.length > 0 ? `${lines.join("\n")}\n` : "# One package a line, as for pip.\n";
