import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Component } from "./attestations.ts";

const limit = 20_000;
const largestList = 64 * 1024 * 1024;

/** What npm has installed, by the list that it leaves in `node_modules`. */
export function npmComponents(modules: string): Component[] {
  let packages: Record<string, { version?: unknown; name?: unknown; link?: unknown }>;
  try {
    const file = join(modules, ".package-lock.json");
    if (!lstatSync(file).isFile() || lstatSync(file).size > largestList) return [];
    const list = JSON.parse(readFileSync(file, "utf8")) as {
      packages?: typeof packages;
    };
    packages = list.packages ?? {};
  } catch {
    return [];
  }
  return Object.entries(packages)
    .slice(0, limit)
    .flatMap(([path, { version, name, link }]) => {
      const found = typeof name === "string" ? name : path.split("node_modules/").at(-1);
      if (link || !found || typeof version !== "string") return [];
      return { ecosystem: "npm", name: found, version };
    });
}

/** What pip has installed, by the names of the directories with records (`<name>-<version>.dist-info`). */
export function pythonComponents(sitePackages: string): Component[] {
  return readdirSync(sitePackages)
    .slice(0, limit)
    .flatMap((entry) => {
      const [, name, version] = /^(.+)-([^-]+)\.dist-info$/.exec(entry) ?? [];
      return name && version ? { ecosystem: "pypi", name, version } : [];
    });
}

/** As a label of a layer lists them: short, because there may be hundreds. */
export function encodeComponents(components: readonly Component[]): string {
  return JSON.stringify(components.map((one) => [one.ecosystem, one.name, one.version]));
}

export function decodeComponents(text: string | undefined): Component[] {
  try {
    const list = JSON.parse(text ?? "[]") as [Component["ecosystem"], string, string][];
    return list.map(([ecosystem, name, version]) => ({ ecosystem, name, version }));
  } catch {
    return [];
  }
}
