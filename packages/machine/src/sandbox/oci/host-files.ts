import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { npmMountPath, npmrcMountPath } from "./base-root.ts";
import { bindMount, type OciMount } from "./oci-spec.ts";

export interface HostFilesOptions {
  /** npm's `npm-cli.js` on this machine. */
  npmCli?: string | undefined;
  /** An npmrc with this machine's way to its package registry; read each time, if it is there. */
  npmConfig?: string | undefined;
}

const npmCertificates = "/usr/local/etc/npm-ca.pem";

/** What containers with this machine's interpreter get of its npm. */
export class HostFiles {
  readonly #options: HostFilesOptions;

  constructor(options: HostFilesOptions) {
    this.#options = options;
  }

  /** `dir` takes a copy of the npmrc that every user of the Pod may read. */
  async npmMounts(dir: string): Promise<OciMount[]> {
    const { npmCli, npmConfig } = this.#options;
    if (npmCli === undefined) return [];
    const mounts = [bindMount(path.dirname(path.dirname(npmCli)), npmMountPath, true)];
    const text = npmConfig && (await readFile(npmConfig, "utf8").catch(() => ""));
    if (!text) return mounts;
    // A file of certificates is named by its path on the host.
    const cafile = /^cafile=(.+)$/m.exec(text)?.[1];
    const hasCertificates = cafile !== undefined && existsSync(cafile);
    if (hasCertificates) mounts.push(bindMount(cafile, npmCertificates, true));
    const inside = text.replace(/^cafile=.+$/m, hasCertificates ? `cafile=${npmCertificates}` : "");
    const file = path.join(dir, "npmrc");
    await writeFile(file, inside, { mode: 0o644 });
    return [...mounts, bindMount(file, npmrcMountPath, true)];
  }
}
