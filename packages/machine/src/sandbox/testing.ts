/** What tests of the sandboxes share. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { temporaryDirectory } from "../testing.ts";
import { type ContainerSpec } from "./sandbox.ts";

/** A container `main` of a Pod whose directory is `dir`; its files of the host exist. */
export function containerSpec(
  dir: string,
  more: Partial<ContainerSpec> & Pick<ContainerSpec, "argv">,
): ContainerSpec {
  const at = (name: string) => path.join(dir, "containers", "main", name);
  mkdirSync(path.dirname(at("termination-log")), { recursive: true });
  writeFileSync(at("termination-log"), "");
  return {
    name: "main",
    run: 0,
    image: { digest: "sha256:1", rootDir: temporaryDirectory(), config: {} },
    env: {},
    mounts: [],
    ports: [],
    logFile: at("0.log"),
    terminationLog: at("termination-log"),
    keepExitCode: false,
    hostName: "hello",
    ...more,
  };
}
