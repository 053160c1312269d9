import { join } from "node:path";
import { createLayer, type Layer } from "../layer.ts";
import { type SourceFile } from "./function-source.ts";

/** Of package managers. */
const configFiles = new Set([".npmrc", "pip.conf"]);

/**
 * The author's files, by their paths in the image. An `.npmrc` or `pip.conf` may hold secrets, and next to a
 * package.json that is blank Node.js refuses to load modules: both are left out.
 */
export function sourceLayer(files: readonly SourceFile[], scratch: string): Promise<Layer> {
  const isBlank = ({ content, link }: SourceFile) =>
    link === undefined && content.toString().trim() === "";
  const entries = files.filter((file) => {
    const name = file.path.slice(file.path.lastIndexOf("/") + 1);
    return !configFiles.has(name) && !(name === "package.json" && isBlank(file));
  });
  const size = entries.reduce(
    (sum, { content, link }) => sum + (link === undefined ? content.length : 0),
    0,
  );
  const inMemory = size < 4 * 1024 * 1024;
  return createLayer(entries, inMemory ? {} : { scratchFile: join(scratch, "source.tar") });
}
