/** Which images there are, and what each is made of. */
import { type Runtime, runtimes } from "@spry/function";
import { type ContainerConfig, createLayer, assembleImage, type AssembledImage } from "@spry/image";
import { type Layer, type LayerFile, stepScript } from "@spry/image";
import { findPython } from "@spry/machine";
import { bundleWeb } from "@spry/dashboard";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { nodeEntrypoint, NodeRuntime } from "../../packages/cli/src/platform/node-runtime.ts";
import {
  compiledPythonRuntime,
  pythonEntrypoint,
  pythonRuntime,
} from "../../packages/cli/src/platform/python-runtime.ts";
import { type HostFiles } from "./host-files.ts";
import {
  gitLayer,
  nodeLayer,
  npmLayer,
  pipLayer,
  pythonLayer,
  systemLayer,
  uvLayer,
} from "./layers.ts";
import { nodeBinary, whyNoNode } from "./node-binary.ts";
import { bundle, type ProgramName } from "./programs.ts";

/** Spry's own programs run on this one, the project's. */
const ownMajor = process.versions.node.split(".")[0] ?? "";

/** One image to be made. */
export interface ImageRecipe {
  /** `spry/<name>` in the registry. */
  name: string;
  /** Why it cannot be made here; undefined when it can. */
  whyNot: string | undefined;
  make(kitchen: Kitchen): Promise<AssembledImage>;
}

/** Layers that several images share are made once. */
export class Kitchen {
  readonly #scratch: string;
  readonly #files = new Map<string, Promise<HostFiles>>();
  readonly #layers = new Map<string, Promise<Layer>>();
  readonly #nodeRuntime = new NodeRuntime();

  /** `scratch` takes the layers until all images are written. */
  constructor(scratch: string) {
    this.#scratch = scratch;
  }

  /** The files of a layer by its name: `system`, `node@24`, `npm`, `git`, `python@3.12`, `pip@3.12`, `uv@3.12`. */
  files(name: string): Promise<HostFiles> {
    return remembered(this.#files, name, async () => {
      const [kind, version = ""] = name.split("@");
      if (kind === "system") return systemLayer();
      if (kind === "npm") return npmLayer();
      const system = await this.files("system");
      if (kind === "node") return nodeLayer(version, system);
      if (kind === "git") return gitLayer(system);
      if (kind === "uv") return uvLayer(version, system);
      if (kind === "python") return pythonLayer(version, system);
      if (kind === "pip") return pipLayer(version, system);
      throw new Error(`making images: no layer ${name}`);
    });
  }

  layer(name: string): Promise<Layer> {
    return remembered(this.#layers, name, async () =>
      this.#write(name, (await this.files(name)).list()),
    );
  }

  /** A layer with some of our own programs, and scripts that start them. */
  programs(files: Record<string, ProgramName>, scripts: readonly LayerFile[] = []): Promise<Layer> {
    const name = Object.values(files).join("-");
    return remembered(this.#layers, `program-${name}`, async () => {
      const list = Object.entries(files).map(async ([file, program]): Promise<LayerFile> => ({
        path: file,
        content: await bundle(program),
      }));
      return this.#write(`program-${name}`, [...scripts, ...(await Promise.all(list))]);
    });
  }

  /** The dashboard's page, as files below a directory. */
  async web(below: string): Promise<LayerFile[]> {
    const folder = path.join(this.#scratch, "web");
    await bundleWeb(folder);
    return readdirSync(folder)
      .sort()
      .map((name) => ({
        path: `${below}/${name}`,
        content: readFileSync(path.join(folder, name)),
      }));
  }

  /** With bytecode for that major (`24`). */
  nodeRuntime(major: string): Promise<Layer> {
    const name = `node-runtime-${major}`;
    return remembered(this.#layers, name, async () => {
      return this.#write(name, await this.#nodeRuntime.compiledFiles(nodeBinary(major)));
    });
  }

  /** With the bytecode of that version (`3.12`): nothing may write it where the root file system is read-only. */
  pythonRuntime(version: string): Promise<Layer> {
    const name = `python-runtime-${version}`;
    return remembered(this.#layers, name, async () => {
      const compiled = await compiledPythonRuntime(version, path.join(this.#scratch, name));
      return this.#write(name, compiled ?? pythonRuntime());
    });
  }

  #write(name: string, files: readonly LayerFile[]): Promise<Layer> {
    return createLayer(files, { scratchFile: path.join(this.#scratch, `${name}.tar.gz`) });
  }
}

function remembered<T>(
  map: Map<string, Promise<T>>,
  key: string,
  make: () => Promise<T>,
): Promise<T> {
  const made = map.get(key) ?? make();
  map.set(key, made);
  return made;
}

/** Every image of a checkout, the system's first. */
export async function recipes(): Promise<ImageRecipe[]> {
  return [
    system("controller", ["git"]),
    system("registry"),
    system("gateway"),
    dashboard(),
    system("eventing"),
    builder("builder", ["npm"]),
    ...(await Promise.all(runtimes.map(ofRuntime))).flat(),
  ];
}

/** A program of ours at `/opt/spry/<name>.cjs`. */
function system(
  name: "controller" | "registry" | "gateway" | "eventing",
  more: string[] = [],
): ImageRecipe {
  const program = `opt/spry/${name}.cjs`;
  const config = { Entrypoint: ["node", `/${program}`] };
  return recipe(name, ["system", `node@${ownMajor}`, ...more], config, (kitchen) =>
    kitchen.programs({ [program]: name }),
  );
}

/** The program, and the page's files that it serves. */
function dashboard(): ImageRecipe {
  const program = "opt/spry/dashboard.cjs";
  const config = { Entrypoint: ["node", `/${program}`] };
  return recipe("dashboard", ["system", `node@${ownMajor}`], config, async (kitchen) =>
    kitchen.programs({ [program]: "dashboard" }, await kitchen.web("opt/spry/web")),
  );
}

/** Builds and fetches sources; with the installer of a language. */
function builder(name: string, more: string[], whyNot?: string): ImageRecipe {
  const config = { Entrypoint: ["node", "/opt/spry/builder.cjs"] };
  return recipe(
    name,
    ["system", `node@${ownMajor}`, ...more, "git"],
    config,
    (kitchen) =>
      kitchen.programs({ "opt/spry/builder.cjs": "builder", "opt/spry/fetcher.cjs": "fetcher" }, [
        { path: "opt/spry/builder.sh", content: stepScript },
      ]),
    whyNot,
  );
}

async function ofRuntime({ name, language, interpreter }: Runtime): Promise<ImageRecipe[]> {
  const [, version = ""] = interpreter.split("@");
  const inFunction = { WorkingDir: "/usr/src/app/function" };
  if (language === "nodejs") {
    const config = { Entrypoint: nodeEntrypoint, ...inFunction };
    const own = (kitchen: Kitchen) => kitchen.nodeRuntime(version);
    return [recipe(name, ["system", `node@${version}`], config, own, whyNoNode(version))];
  }
  const python = await findPython(version);
  const whyNot = python ? undefined : `Python ${version} is not on this machine`;
  const config = {
    Entrypoint: pythonEntrypoint,
    ...inFunction,
  };
  const layers = ["system", `python@${version}`];
  return [
    recipe(name, layers, config, (kitchen) => kitchen.pythonRuntime(version), whyNot),
    builder(
      `builder-${name}`,
      [`python@${version}`, `pip@${version}`, ...(python?.uv ? [`uv@${version}`] : [])],
      whyNot ?? (python?.pip ? undefined : `Python ${version} has no pip here`),
    ),
  ];
}

function recipe(
  name: string,
  layers: string[],
  config: ContainerConfig,
  own: (kitchen: Kitchen) => Promise<Layer>,
  whyNot?: string,
): ImageRecipe {
  return {
    name,
    whyNot,
    async make(kitchen) {
      const made: Layer[] = [];
      for (const layer of layers) made.push(await kitchen.layer(layer));
      made.push(await own(kitchen));
      const env = ["PATH=/usr/local/bin:/usr/bin:/bin"];
      return assembleImage({ layers: made, config: { User: "1000:1000", Env: env, ...config } });
    },
  };
}
