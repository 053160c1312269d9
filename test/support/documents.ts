/** The npm package, made and installed as the documents say, on a machine with an empty home; and who follows a document on it. */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { blocksOf } from "./document-blocks.ts";
import { DocumentRunner } from "./document-runner.ts";
import { root } from "./platform.ts";

export class Documents {
  readonly #home = mkdtempSync(path.join(tmpdir(), "spry-documents-"));
  readonly #node = path.dirname(process.execPath);
  #tarball = "";

  /** Where npm installs the package. */
  get prefix(): string {
    return path.join(this.#home, "prefix");
  }

  make(): void {
    const args = ["tools/package/main.ts", this.#home];
    this.#tarball = execFileSync(process.execPath, args, { cwd: root, encoding: "utf8" }).trim();
  }

  /** As the first block of the quick start, for documents that begin after it. */
  async install(): Promise<void> {
    const runner = await this.#runner("install");
    const text = `npm install -g ./${path.basename(this.#tarball)}`;
    await runner.run({
      language: "sh",
      text,
      line: 1,
      file: undefined,
      isBackground: false,
      isNotRun: false,
    });
    await runner.end();
  }

  /** Follows a document in a home of its own; the package is there, as the quick start expects it. */
  async follow(document: string): Promise<void> {
    const runner = await this.#runner(path.basename(document, ".md"));
    try {
      for (const block of blocksOf(readFileSync(path.join(root, document), "utf8"))) {
        if (block.isNotRun) continue;
        try {
          await runner.run(block);
        } catch (error) {
          const where = `${document}:${block.line}`;
          throw new Error(`${where}: ${(error as Error).message}`, { cause: error });
        }
      }
    } finally {
      await runner.end();
    }
  }

  remove(): void {
    rmSync(this.#home, { recursive: true, force: true });
  }

  async #runner(name: string): Promise<DocumentRunner> {
    const own = path.join(this.#home, name);
    mkdirSync(own);
    const runner = await DocumentRunner.create(own, this.prefix, this.#node);
    copyFileSync(this.#tarball, path.join(runner.work, path.basename(this.#tarball)));
    return runner;
  }
}
