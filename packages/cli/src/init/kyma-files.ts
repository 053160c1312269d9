/** What the original's `init function` writes: a `config.yaml`, and an inline Function's two files. */
import { dump } from "js-yaml";
import { type Runtime } from "@spry/function";
import { kymaConfigName, kymaFilesOf } from "../kyma/config-yaml.ts";
import { kymaConfigSchema } from "../kyma/schema.ts";
import { configName, configSchema, schemaName } from "../project/schema.ts";
import { alone, editorSettings, vscodeFiles } from "./vscode-files.ts";

export interface KymaInit {
  name: string;
  runtime: Runtime;
  schemaVersion: string;
  namespace: string | undefined;
  runtimeImageOverride: string | undefined;
  /** A Function from Git, which has no files here. */
  git: { url: string; reference: string; baseDir: string } | undefined;
  /** With a schema of `config.yaml` for editors. */
  vscode: boolean;
}

const nodeHandler = `module.exports = {
  main: async function (event, context) {
    return "Hello World!";
  },
};
`;
const pythonHandler = `def main(event, context):
    return "Hello World!"
`;

export const helloHandler = ({ language }: Runtime): string =>
  language === "nodejs" ? nodeHandler : pythonHandler;

/** The handler, and what declares its packages. */
export function kymaCodeFiles(name: string, runtime: Runtime): Record<string, string> {
  const [handler, manifest] = kymaFilesOf(runtime.name);
  const packageJson = { name, version: "0.0.1", dependencies: {} };
  return {
    [handler]: helloHandler(runtime),
    [manifest]: runtime.language === "nodejs" ? `${JSON.stringify(packageJson, null, 2)}\n` : "",
  };
}

export function kymaInitFiles(init: KymaInit): Record<string, string> {
  const { name, namespace, runtime, schemaVersion, runtimeImageOverride, git } = init;
  const [handler, manifest] = kymaFilesOf(runtime.name);
  const config = {
    schemaVersion,
    name,
    ...(namespace !== undefined && { namespace }),
    runtime: runtime.name,
    ...(runtimeImageOverride !== undefined && { runtimeImageOverride }),
    source: git
      ? { sourceType: "git", ...git }
      : { sourceType: "inline", sourceHandlerName: handler, depsHandlerName: manifest },
  };
  return {
    [kymaConfigName]: dump(config, { lineWidth: -1 }),
    ...(!git && kymaCodeFiles(name, runtime)),
    // The files of a Function from Git are elsewhere.
    ...(init.vscode && !git && vscodeFiles(alone(name, runtime))),
    ...(init.vscode && kymaEditor()),
  };
}

const kymaSchemaName = ".vscode/config.schema.json";

/** The schema of a `config.yaml`, and where VS Code finds it. */
export const kymaEditor = (): Record<string, string> => ({
  [kymaSchemaName]: `${JSON.stringify(kymaConfigSchema, null, 2)}\n`,
  ...settingsFor(kymaSchemaName, kymaConfigName),
});

/** The same of a `spry.yaml`. */
export const spryEditor = (): Record<string, string> => ({
  [schemaName]: `${JSON.stringify(configSchema, null, 2)}\n`,
  ...settingsFor(schemaName, configName),
});

/** With the schema that a file has, for VS Code's YAML extension. */
function settingsFor(schema: string, file: string): Record<string, string> {
  const settings = { ...editorSettings, "yaml.schemas": { [`./${schema}`]: file } };
  return { ".vscode/settings.json": `${JSON.stringify(settings, null, 2)}\n` };
}
