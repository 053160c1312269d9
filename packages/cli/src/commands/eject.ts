import { dumpYaml } from "@spry/kube";
import { copyFileSync, existsSync, mkdirSync, statSync, symlinkSync } from "node:fs";
import path from "node:path";
import { type Function, runtimeOf } from "@spry/function";
import { connect, type GlobalOptions } from "../connection.ts";
import { plainManifests } from "../eject/plain-manifests.ts";
import { findFunction } from "../find-function.ts";
import { kymaFilesOf } from "../kyma/config-yaml.ts";
import { runtimeFilesOf } from "../platform/runtime-files.ts";
import { listSource } from "../project/files.ts";
import { shownPath } from "../project/shown-path.ts";
import { readMember, readStack } from "../project/stack.ts";
import { UserError } from "../user-error.ts";
import { writeFiles } from "../write-files.ts";

export interface EjectOptions extends GlobalOptions {
  dir?: string;
  source?: string;
  targetAppName?: string;
  force?: boolean;
}

/** Writes what runs without Spry: code, runtime, Dockerfile and manifests. */
export async function eject(name: string, options: EjectOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const root = path.resolve(options.dir ?? name);
  if (existsSync(root) && !options.force)
    throw new UserError(
      `${shownPath(root)} exists: nothing was written`,
      "choose another directory with --dir, or overwrite files with --force",
    );
  const app = options.targetAppName ?? name;
  const source = options.source && directoryOf(options.source, name);
  const files: Record<string, string | Buffer> = {
    Dockerfile: dockerfile(fn),
    ...Object.fromEntries(
      Object.entries(plainManifests(fn, app)).map(([kind, objects]) => [
        `k8s/${kind}.yaml`,
        objects.map((each) => dumpYaml(each)).join("---\n"),
      ]),
    ),
    "README.md": readme(app),
    ...functionFiles(fn, source),
  };
  const runtime = await runtimeFilesOf(runtimeOf(fn));
  for (const file of runtime.files)
    if ("content" in file)
      files[`runtime/${file.path.replace(/^usr\/src\/app\//, "")}`] = Buffer.from(file.content);
  writeFiles(root, files);
  if (source !== undefined) copySource(source, path.join(root, "function"));
  console.log(
    `${shownPath(root)} has the Function's code, its runtime, a Dockerfile and manifests; README.md says how to use them.`,
  );
}

function functionFiles(fn: Function, source: string | undefined): Record<string, string> {
  if (source) return {};
  const { inline } = fn.spec.source;
  const name = fn.metadata.name ?? "";
  if (!inline)
    throw new UserError(
      `the code of Function ${name} is ${fn.spec.source.image ? "in a directory" : "in Git"}, not in the Function`,
      "name that directory with --source DIR",
    );
  const [handler, manifest] = kymaFilesOf(runtimeOf(fn).name);
  return {
    [`function/${handler}`]: inline.source,
    ...(inline.dependencies !== undefined && { [`function/${manifest}`]: inline.dependencies }),
  };
}

/** Of a directory with several Functions: the files of the one with this name. */
function directoryOf(source: string, name: string): string {
  const root = path.resolve(source);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory() || !readStack(root)) return root;
  return readMember(root, name).directory;
}

function copySource(source: string, target: string): void {
  for (const { path: name, file, link } of listSource(source).files) {
    const place = path.join(target, name);
    mkdirSync(path.dirname(place), { recursive: true });
    if (link) symlinkSync(link.text, place);
    else copyFileSync(file, place);
  }
}

function dockerfile(fn: Function): string {
  const { language, interpreter } = runtimeOf(fn);
  const [, version = ""] = interpreter.split("@");
  if (language === "python")
    return `FROM python:${version}-slim
WORKDIR /usr/src/app/function
COPY function/ ./
RUN if [ ! -f requirements.txt ] && [ -f pyproject.toml ]; then python3 -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb')).get('project', {}).get('dependencies', []), sep=chr(10))" > requirements.txt; fi
RUN if [ -f requirements.txt ]; then pip install --no-cache-dir -r requirements.txt; fi
COPY runtime/ ../
USER 1000
EXPOSE 8080
CMD ["python3", "/usr/src/app/spry_runtime/__main__.py"]
`;
  return `FROM node:${version}-slim
WORKDIR /usr/src/app/function
COPY function/ ./
RUN if [ -f package.json ]; then npm install --omit=dev; fi
COPY runtime/ ../
USER 1000
EXPOSE 8080
CMD ["node", "/usr/src/app/server.cjs"]
`;
}

const readme = (app: string): string => `# ${app}

What runs this Function without Spry: \`function/\` has its code, \`runtime/\` the server around it.

    docker build -t ${app} .
    docker run -p 8080:8080 ${app}

On a cluster: push the image to a registry, put its name into \`k8s/deployment.yaml\`, and \`kubectl apply -f k8s/\`.
`;
