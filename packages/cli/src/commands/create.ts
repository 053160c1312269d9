/** The original's `function create` and `function init`: a Function of one file, with no configuration next to it. */
import { existsSync, readFileSync } from "node:fs";
import { defaultRuntime, functions, type Runtime } from "@spry/function";
import { apiVersionOf } from "@spry/kube";
import { helloHandler } from "../init/kyma-files.ts";
import { type Manifest } from "../manifests.ts";
import { runtimeNamed } from "../project/project.ts";
import { UserError } from "../user-error.ts";
import { type ApplyOptions, applyManifests } from "./apply.ts";
import { init } from "./init.ts";

interface RuntimeOptions {
  runtime?: string;
  nodeVersion?: string;
}

export interface CreateOptions extends RuntimeOptions, ApplyOptions {
  source?: string;
  dependencies?: string;
  replicas?: number;
  env?: string[];
  secretMount?: string[];
  runtimeImageOverride?: string;
  istioInjection?: boolean;
}

/** `words`: the name, or a language and the name. */
export async function create(words: readonly string[], options: CreateOptions): Promise<void> {
  const manifest = { object: functionOf(words, options), origin: "function create" };
  await applyManifests(() => [manifest], options);
}

export async function initCode(
  language: string | undefined,
  options: RuntimeOptions & { dir: string; force?: boolean },
): Promise<void> {
  const { name } = runtimeMeant(language, options);
  await init(undefined, { ...options, runtime: name, isCodeOnly: true });
}

const runtimes: Readonly<Record<string, string>> = { nodejs: defaultRuntime, python: "python312" };

function runtimeMeant(language: string | undefined, options: RuntimeOptions): Runtime {
  const { runtime, nodeVersion } = options;
  const usual = Object.hasOwn(runtimes, language ?? "nodejs") && runtimes[language ?? "nodejs"];
  if (!usual)
    throw new UserError(
      `${language} is not a language of Functions`,
      "use nodejs or python, or leave it out",
    );
  return runtimeNamed(runtime ?? (nodeVersion === undefined ? usual : `nodejs${nodeVersion}`));
}

function functionOf(words: readonly string[], options: CreateOptions): Manifest["object"] {
  const [language, name, ...others] = words.length === 1 ? [undefined, ...words] : words;
  if (name === undefined || others.length > 0 || Object.hasOwn(runtimes, name))
    throw new UserError(
      "the name of the Function is missing",
      "write it alone, or after its language: nodejs NAME",
    );
  const runtime = runtimeMeant(language, options);
  const { source, dependencies, replicas, env, secretMount, runtimeImageOverride } = options;
  const spec = {
    runtime: runtime.name,
    ...(runtimeImageOverride !== undefined && { runtimeImageOverride }),
    ...(replicas !== undefined && { replicas }),
    ...(env && {
      env: env.map((each) => {
        const [key, value] = pairOf(each, "a variable", "NAME=VALUE");
        return { name: key, value };
      }),
    }),
    ...(secretMount && {
      secretMounts: secretMount.map((each) => {
        const [secretName, mountPath] = pairOf(each, "a mount", "SECRET=PATH");
        return { secretName, mountPath };
      }),
    }),
    ...(options.istioInjection && { labels: { "sidecar.istio.io/inject": "true" } }),
    source: {
      inline: {
        source: source === undefined ? helloHandler(runtime) : read(source),
        ...(dependencies !== undefined && { dependencies: read(dependencies) }),
      },
    },
  };
  return {
    apiVersion: apiVersionOf(functions),
    kind: functions.kind,
    metadata: { name },
    spec,
  };
}

function pairOf(text: string, what: string, form: string): [key: string, value: string] {
  const at = text.indexOf("=");
  if (at < 1) throw new UserError(`${text} is not ${what}`, `write ${form}`);
  return [text.slice(0, at), text.slice(at + 1)];
}

function read(file: string): string {
  if (!existsSync(file)) throw new UserError(`the file ${file} does not exist`);
  return readFileSync(file, "utf8");
}
