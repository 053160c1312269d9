/** The Node.js runtime as images carry it: its program, and the bytecode of it if that can be had. */
import path from "node:path";
import { type LayerFile } from "@spry/image";
import { bundleRuntime, compileRuntime, type RuntimeFile } from "@spry/runtime-nodejs";
import { sourceDigest } from "./source-digest.ts";

const sources = path.resolve(import.meta.dirname, "../../../../runtimes/nodejs");
const directory = "usr/src/app";

export const nodeEntrypoint: string[] = ["node", `/${directory}/server.cjs`];

/** Bundled only when it is read, and once. Who asked stops esbuild. */
export class NodeRuntime {
  /** Of the sources. */
  readonly digest: string = sourceDigest(sources);
  #files: Promise<RuntimeFile[]> | undefined;

  get isMade(): boolean {
    return this.#files !== undefined;
  }

  /** For any Node.js. */
  async files(): Promise<LayerFile[]> {
    return inImage(await this.#bundled());
  }

  /** The same with bytecode, which saves the Node.js at `node` from compiling at each start. Throws when that cannot be made. */
  async compiledFiles(node: string): Promise<LayerFile[]> {
    return inImage(await compileRuntime(await this.#bundled(), node));
  }

  #bundled(): Promise<RuntimeFile[]> {
    return (this.#files ??= bundleRuntime());
  }
}

const inImage = (files: readonly RuntimeFile[]): LayerFile[] =>
  files.map(({ path: file, content }) => ({ path: `${directory}/${file}`, content }));
