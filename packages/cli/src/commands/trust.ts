import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { hostAuthorityName } from "../platform/host-authority.ts";
import { shellWord } from "../shell-word.ts";
import { UserError } from "../user-error.ts";

export interface TrustOptions {
  dataDir: string;
  /** Runs the commands, which ask for the administrator's password. */
  install?: boolean;
}

/**
 * Prints where the certificate of the authority for hosts of APIRules is, and how this system comes to trust it; with
 * `install`, does so. It can sign for names of this machine and of private networks only.
 */
export async function trust({ dataDir, install = false }: TrustOptions): Promise<void> {
  const root = path.resolve(dataDir);
  const file = path.join(root, "pki", `${hostAuthorityName}.crt`);
  if (!existsSync(path.join(root, "pki")))
    throw new UserError(
      `${root} is not the data directory of a platform`,
      "name it with --data-dir",
    );
  if (!existsSync(file))
    throw new UserError(
      `a certificate authority for hosts does not exist in ${dataDir} yet`,
      "it is made with the first host: `spry expose FUNCTION`",
    );
  const commands = commandsFor(process.platform, file, existsSync);
  if (!install) {
    console.log(file);
    console.error(`\nTo trust it on this system${commands.length > 0 ? ":" : ", see its manual."}`);
    for (const command of commands) console.error(`  ${command.map(shellWord).join(" ")}`);
    console.error("\nFor one command: curl --cacert FILE, NODE_EXTRA_CA_CERTS=FILE.");
    console.error("Firefox has a store of its own: Settings, Certificates, Authorities, Import.");
    return;
  }
  if (commands.length === 0)
    throw new UserError(`how this system trusts certificates is not known`, `add ${file} by hand`);
  for (const [program = "", ...args] of commands) {
    console.error(`$ ${[program, ...args].map(shellWord).join(" ")}`);
    execFileSync(program, args, { stdio: "inherit" });
  }
}

const linuxStores = [
  ["/usr/local/share/ca-certificates", "update-ca-certificates"],
  ["/etc/pki/ca-trust/source/anchors", "update-ca-trust"],
  ["/etc/ca-certificates/trust-source/anchors", "update-ca-trust"],
] as const;

/** What makes the system trust it, each a program with its arguments; nothing where that is not known. */
export function commandsFor(
  platform: NodeJS.Platform,
  file: string,
  exists: (path: string) => boolean,
): string[][] {
  if (platform === "darwin") {
    const store = "/Library/Keychains/System.keychain";
    return [["sudo", "security", "add-trusted-cert", "-d", "-r", "trustRoot", "-k", store, file]];
  }
  if (platform === "win32") return [["certutil", "-addstore", "-user", "Root", file]];
  const [directory, update] = linuxStores.find(([directory]) => exists(directory)) ?? [];
  if (!directory || !update) return [];
  return [
    ["sudo", "install", "-m", "0644", file, `${directory}/spry-hosts.crt`],
    ["sudo", update],
  ];
}
