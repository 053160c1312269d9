/** A container of a Pod exchanges the part of a volume that the next container is about to get. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { openOciSandbox } from "@spry/machine";
import { hasRuntime } from "../support/host-address.ts";

const isRoot = process.platform === "linux" && process.getuid?.() === 0;
const skipped = isRoot && hasRuntime() ? "" : " (skipped: needs root and runc)";

/** How the part of the volume is exchanged, by shell commands in the volume, in which `$1` is a file of the machine. */
const exchanges = [
  { name: "a directory for a link", part: "part", commands: 'mv part old; ln -s "$1" part' },
  {
    name: "a directory above it for a link",
    part: "above/part",
    commands: 'mv above old; ln -s "$(dirname "$1")" above',
  },
];

test.skipIf(skipped).each(exchanges)(
  `subPath in oci: $name, between the check and the mount${skipped}`,
  async ({ part, commands }) => {
    const dir = realpathSync(mkdtempSync(path.join(tmpdir(), "spry-sub-path-")));
    // The attacker's moment, made certain: between the platform's check and the runtime's mount.
    const real = execFileSync("sh", ["-c", "command -v runc || command -v crun"], {
      env: { PATH: `${process.env["PATH"]}:/usr/sbin` },
      encoding: "utf8",
    }).trim();
    const runtime = path.join(dir, path.basename(real));
    const exchange = path.join(dir, "exchange");
    writeFileSync(runtime, `#!/bin/sh\n[ ! -e ${exchange} ] || . ${exchange}\nexec ${real} "$@"\n`);
    chmodSync(runtime, 0o755);
    const sandbox = await openOciSandbox({ dataDir: path.join(dir, "node"), runtime });
    await sandbox.recover();

    const secret = path.join(dir, "machine", "part");
    const place = await sandbox.openPod({ uid: "sub-path-1", namespace: "default", name: "it" });
    const volume = path.join(place.dir, "volumes", "scratch");
    for (const each of [secret, path.join(volume, part)]) mkdirSync(each, { recursive: true });
    writeFileSync(path.join(secret, "text"), "the machine's");
    writeFileSync(path.join(volume, part, "text"), "the Pod's");
    const script = `set -- ${secret} "$@"; (cd ${volume} && rm ${exchange} && ${commands}) || exit; shift`;
    writeFileSync(exchange, script);

    const own = path.join(place.dir, "containers", "main");
    mkdirSync(own, { recursive: true });
    const at = (name: string) => path.join(own, name);
    writeFileSync(at("termination-log"), "");
    const container = await place.start({
      name: "main",
      run: 0,
      image: {
        digest: "sha256:1",
        rootDir: realpathSync(mkdtempSync(path.join(dir, "image-"))),
        config: {
          Labels: { "io.spry.interpreter": `node@${process.versions.node.split(".")[0]}` },
        },
      },
      argv: ["cat", "/part/text"],
      env: {},
      mounts: [{ mountPath: "/part", source: path.join(volume, part) }],
      ports: [],
      logFile: at("0.log"),
      terminationLog: at("termination-log"),
      keepExitCode: true,
      hostName: "it",
    });
    await container.exited;
    expect(readFileSync(at("0.log"), "utf8")).toBe("the Pod's");
    expect(() => readFileSync(exchange)).toThrow("ENOENT");
    await place.close();
    await sandbox.close();
  },
);
