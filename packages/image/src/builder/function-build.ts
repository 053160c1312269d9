import { sourceDigest } from "@spry/function";
import { assembleImage } from "../assemble-image.ts";
import { attachArtifacts } from "../attach-artifact.ts";
import { type Digest } from "../digest.ts";
import { formatImageName, parseImageName } from "../image-name.ts";
import { createLayer, type Layer } from "../layer.ts";
import { type LayerSource, pushImage } from "../push-image.ts";
import { attestationsOf, type Component } from "./attestations.ts";
import { type Base, openBase } from "./base.ts";
import { type BuildOptions } from "./build-options.ts";
import {
  defaultCache,
  type DependencyLayer,
  type DependencyRequest,
  findDependencyLayer,
  pushDependencyLayer,
} from "./dependencies.ts";
import { readSource, type SourceFile } from "./function-source.ts";
import { baseAnnotations, imageLabels } from "./image-labels.ts";
import { type Installation } from "./installer.ts";
import { knownLayer, layerAnnotation } from "./known-layer.ts";
import { packageFiles } from "./monorepo.ts";
import { builtSource, hasBuildScript, runBuild, unpackDependencies } from "./node-build.ts";
import { nodeDependencies } from "./node-dependencies.ts";
import { withProjectFile } from "./pyproject.ts";
import { pythonDependencies, pythonVersion } from "./python-dependencies.ts";
import { sourceLayer } from "./source-layer.ts";
import { transformTypeScript } from "./transform-typescript.ts";

const functionDirectory = "usr/src/app/function";

/** What goes into the image, and what only its build script needs besides. */
const dependencySets = ["runtime", "build"] as const;
type DependencySet = (typeof dependencySets)[number];

/** What `fetch` has done, for the steps after it. As JSON. */
export interface Fetched {
  /** Dependencies that are in the build's directory, and in no registry yet. */
  installed: DependencySet[];
  /** Those of them whose packages have scripts to run. */
  scripted: DependencySet[];
  /** Whether foreign code has to run before there can be an image. */
  needsScripts: boolean;
}

/**
 * The build of one image, in three steps, so that each may be a container of its own: `fetch` and `push` have
 * credentials and run nothing that is not ours, `runScripts` runs the code of packages and needs no credentials.
 * The later steps trust nothing in the build's directory.
 */
export class FunctionBuild {
  readonly #options: BuildOptions;
  /** Shared by the steps; `options.scratch` is for one step alone. */
  readonly #directory: string;
  readonly #files: readonly SourceFile[];
  readonly #digest: Digest;
  readonly #installations: Partial<Record<DependencySet, Installation>> = {};
  readonly #hasBuildScript: boolean;
  #runnable: readonly SourceFile[] | undefined;
  readonly #found = new Map<DependencySet, DependencyLayer>();
  #base: Promise<Base> | undefined;

  private constructor(options: BuildOptions, directory: string, files: readonly SourceFile[]) {
    this.#options = options;
    this.#directory = directory;
    this.#digest = sourceDigest(files);
    const isNode = pythonVersion(options.runtime) === undefined;
    this.#hasBuildScript = isNode && hasBuildScript(files);
    const { monorepo } = options;
    const own = files.map((file) => ({ ...file, path: `${functionDirectory}/${file.path}` }));
    const beside = isNode && monorepo ? packageFiles(monorepo, functionDirectory) : [];
    this.#files = [...own, ...beside];
  }

  /**
   * Reads the source, unless its files are given. Throws an error when its digest is another than expected, and a `UserError`
   * when it cannot be built.
   */
  static async open(
    options: BuildOptions,
    directory: string,
    files: readonly SourceFile[] = readSource(options.source, { report: options.report }),
  ): Promise<FunctionBuild> {
    const build = new FunctionBuild(options, directory, files);
    if (options.sourceDigest !== undefined && options.sourceDigest !== build.#digest)
      throw new Error(
        `reading the source: it has changed since the build was started (${build.#digest} instead of ${options.sourceDigest})`,
      );
    await build.#readDependencies(files);
    return build;
  }

  async #readDependencies(files: readonly SourceFile[]): Promise<void> {
    const { runtime, npmConfig, scratch, monorepo, report } = this.#options;
    const version = pythonVersion(runtime);
    const add = (set: DependencySet, installation: Installation | undefined) => {
      if (installation) this.#installations[set] = installation;
    };
    if (version !== undefined) {
      const given = await withProjectFile(files, scratch);
      add("runtime", pythonDependencies(given, version, functionDirectory, this.#options));
      return;
    }
    const options = { npmConfig, monorepo };
    add(
      "runtime",
      nodeDependencies(files, functionDirectory, { ...options, report, onLine: report }),
    );
    if (!this.#hasBuildScript) return;
    add(
      "build",
      nodeDependencies(files, functionDirectory, { ...options, withDev: true, onLine: report }),
    );
  }

  /** Gets what is in no registry yet from the package registries, with credentials and without running any of it. */
  async fetch(): Promise<Fetched> {
    const { client, report = () => {} } = this.#options;
    const fetched: Fetched = {
      installed: [],
      scripted: [],
      needsScripts: this.#hasBuildScript,
    };
    // A mistake in it is seen before anything is installed.
    if (!this.#hasBuildScript) this.#runnableFiles();
    for (const [set, installation] of this.#sets()) {
      const found = await this.#find(set, installation);
      if (found && set === "build") await unpackDependencies(client, found, this.#directory);
      if (found) continue;
      report("installing dependencies");
      fetched.installed.push(set);
      if (!(await installation.fetch(this.#directory))) continue;
      fetched.scripted.push(set);
      fetched.needsScripts = true;
    }
    return fetched;
  }

  /** Runs the scripts of packages, and the Function's own `build` script. Uses no credentials and no registry. */
  async runScripts({ installed, scripted }: Fetched): Promise<void> {
    const { report = () => {} } = this.#options;
    for (const [set, installation] of this.#sets()) {
      if (!scripted.includes(set)) continue;
      report("running the scripts of dependencies");
      await installation.runScripts(this.#directory);
    }
    if (!this.#hasBuildScript) return;
    const { build } = this.#installations;
    const isHere = build && installed.includes("build");
    const dependencies = isHere ? build.read(this.#directory).files : [];
    report("running the build script");
    await runBuild([...this.#files, ...dependencies], functionDirectory, this.#directory, report);
  }

  /** Makes the image and pushes it; returns its name by digest. Runs nothing of what it packs. */
  async push(fetched: Fetched): Promise<{ image: string; sentBytes: number }> {
    const { client, runtimeLayer, report = () => {}, scratch } = this.#options;
    const [base, source] = await Promise.all([
      this.#openBase(),
      sourceLayer(this.#sourceFiles(), scratch),
    ]);
    const dependencies = await this.#dependencyLayers(fetched);
    const layers: Layer[] = [...dependencies.map(({ layer }) => layer), source];
    if (runtimeLayer) layers.unshift(await createLayer(runtimeLayer.files));
    const sources: LayerSource[] = dependencies.map((each) => each.source);
    if (base.source) sources.unshift(base.source);

    const target = parseImageName(this.#options.destination);
    const labels = imageLabels(this.#options);
    const image = assembleImage({
      base,
      layers,
      annotations: {
        ...labels,
        ...baseAnnotations(base, this.#options),
        ...layerAnnotation(dependencies[0]),
      },
      config: { ...runtimeLayer?.config, Labels: { ...runtimeLayer?.config.Labels, ...labels } },
      created: this.#options.origin?.created,
    });
    const onSend = (layer: Layer) => {
      if (layer === source)
        report(`pushing source layer ${(layer.descriptor.size / 1024).toFixed(1)} KiB`);
    };
    const components = dependencies.flatMap((each) => each.components);
    const attestations = this.#attestations(image.digest, base, components);
    const subject = { mediaType: image.mediaType, digest: image.digest, size: image.bytes.length };
    // Side by side: documents may come before what they are about, and nothing waits for them alone.
    const [{ digest, sentBytes }] = await Promise.all([
      pushImage(client, image, target, { sources, onSend }),
      attachArtifacts(client, subject, target, attestations),
    ]);
    const { host, repository } = target;
    return { image: formatImageName({ host, repository, digest }), sentBytes };
  }

  #sets(): [DependencySet, Installation][] {
    return dependencySets.flatMap((set) => {
      const installation = this.#installations[set];
      return installation ? [[set, installation] as [DependencySet, Installation]] : [];
    });
  }

  /** Of the runtime's dependencies; those of the build script go to the registry alone. */
  async #dependencyLayers({ installed }: Fetched): Promise<DependencyLayer[]> {
    const { client } = this.#options;
    const layers: DependencyLayer[] = [];
    for (const [set, installation] of this.#sets()) {
      const request = await this.#request(installation);
      if (installed.includes(set)) {
        const pushed = await pushDependencyLayer(client, request, this.#directory);
        if (set === "runtime") layers.push(pushed);
        else await pushed.source.ready;
      } else if (set === "runtime") {
        const found = await this.#find(set, installation);
        if (!found) throw new Error("the layer with the dependencies has just been removed");
        layers.push(found);
      }
    }
    return layers;
  }

  async #find(
    set: DependencySet,
    installation: Installation,
  ): Promise<DependencyLayer | undefined> {
    const known = this.#found.get(set);
    if (known) return known;
    const request = await this.#request(installation);
    const { client, destination, previousImage, report = () => {} } = this.#options;
    const found = await findDependencyLayer(client, request);
    if (!found) return undefined;
    // The Function has had these dependencies before: another layer for them is not to be trusted.
    const before =
      set === "runtime" && (await knownLayer(client, destination, previousImage, found.key));
    if (before && before !== found.layer.descriptor.digest) {
      report("the cache has other dependencies than the image before: they are installed again");
      return undefined;
    }
    this.#found.set(set, found);
    return found;
  }

  #sourceFiles(): readonly SourceFile[] {
    if (!this.#hasBuildScript) return this.#runnableFiles();
    const isOwn = ({ path }: SourceFile) => path.startsWith(`${functionDirectory}/`);
    const built = builtSource(functionDirectory, this.#directory);
    return [
      ...built.map((file) => ({ ...file, path: `${functionDirectory}/${file.path}` })),
      ...this.#files.filter((file) => !isOwn(file)),
    ];
  }

  /** What Node.js can run of it. */
  #runnableFiles(): readonly SourceFile[] {
    const { runtime, isCompiled = false, report = () => {} } = this.#options;
    if (isCompiled || pythonVersion(runtime) !== undefined) return this.#files;
    return (this.#runnable ??= transformTypeScript(this.#files, functionDirectory, report));
  }

  #openBase(): Promise<Base> {
    const { client, base } = this.#options;
    return (this.#base ??= openBase(client, base, this.#options));
  }

  async #request(installation: Installation): Promise<DependencyRequest> {
    const { runtime, dependencyCache, destination, scratch, report = () => {} } = this.#options;
    const { os, architecture } = (await this.#openBase()).config;
    return {
      installation,
      runtime,
      platform: { os, architecture },
      cache: dependencyCache ?? defaultCache(destination),
      scratch,
      report,
    };
  }

  #attestations(digest: Digest, base: Base, components: readonly Component[]) {
    const { title, runtime, origin, baseName, destination } = this.#options;
    return attestationsOf({
      digest,
      repository: parseImageName(destination).repository,
      title,
      runtime,
      created: origin?.created,
      components,
      source: { digest: this.#digest, url: origin?.url, revision: origin?.revision },
      base: { digest: base.digest, name: baseName },
    });
  }
}
