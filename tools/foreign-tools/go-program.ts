import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import { cacheDir } from "../real-apiserver/binaries.ts";
import { moduleFileWith } from "./module-file.ts";

/** A program of a Go module, which is built unchanged, with the module's own go.mod and go.sum. */
export interface GoProgram {
  name: string;
  /** With its version. */
  module: string;
  /** Of the program, from the module's root. */
  directory: string;
  /** A module, with its version, that go.mod replaces by a folder which only the repository has. */
  released?: string;
}

/** In the user's cache, under a name with the version. */
export function goProgramFile({ name, module }: GoProgram): string {
  const version = module.split("@")[1] ?? "";
  return path.join(path.dirname(cacheDir()), "foreign-tools", `${name}-${version}`);
}

/** Builds it unless it is there; throws when Go fails. */
export function buildGoProgram(program: GoProgram): void {
  const file = goProgramFile(program);
  if (existsSync(file)) return;
  mkdirSync(path.dirname(file), { recursive: true });
  console.error(`building ${program.name}; this happens once, and may take half an hour ...`);
  const described = execFileSync("go", ["mod", "download", "-json", program.module], {
    encoding: "utf8",
  });
  const { Dir } = JSON.parse(described) as { Dir: string };
  const partial = `${file}.partial`;
  const flags = ["-mod=readonly", "-trimpath", `-o=${partial}`];
  const { released } = program;
  using moduleFile = released === undefined ? undefined : moduleFileWith(released, Dir);
  if (moduleFile) flags.push(`-modfile=${moduleFile.path}`);
  execFileSync("nice", ["-n", "10", "go", "build", ...flags, program.directory], {
    cwd: Dir,
    env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-buildvcs=false" },
    stdio: ["ignore", 2, 2],
  });
  renameSync(partial, file);
}
