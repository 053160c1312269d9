/** A look at everything in a data directory: what a start relies on, and what it would notice only when it is used. */
import { existsSync, mkdirSync, statSync } from "node:fs";
import path from "node:path";
import { checkStore } from "@spry/apiserver";
import { damagedContent } from "@spry/image";
import { certificateFolders } from "../certificate-subjects.ts";
import { certificateProblem } from "../certificates.ts";
import { type DataDir } from "../data-dir.ts";
import { type Finding } from "./finding.ts";
import { unpackedImages } from "./unpacked-images.ts";
import { spryCommand } from "../../shown-command.ts";

/** Files that hold keys or passwords, and the directory of the store's, from the data directory's root. */
const secretFiles = [
  "kubeconfig",
  "gateway.kubeconfig",
  "registry.json",
  "api",
  "api/service-account.key",
  ...certificateFiles().map((file) => path.join("pki", `${file}.key`)),
];

/** Below `pki`, without their endings. */
function certificateFiles(): string[] {
  return Object.entries(certificateFolders).flatMap(([folder, names]) =>
    ["ca", ...names].map((name) => path.join(folder, name)),
  );
}

type Places = Pick<DataDir, "root" | "api" | "pki" | "registry" | "node">;

/** In this order: objects, certificates, who may read secrets, images. Nothing is changed but the store's log, as by a start. */
export async function* verify(dataDir: Places): AsyncGenerator<Finding> {
  yield await store(dataDir);
  yield* certificates(dataDir);
  yield* modes(dataDir);
  yield* registryContent(dataDir);
  const scratch = path.join(dataDir.root, "scratch");
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  yield* unpackedImages(path.join(dataDir.node, "images"), dataDir.registry, scratch);
}

async function store({ root, api }: Places): Promise<Finding> {
  const file = path.join(api, "state.db");
  const wayOut = `put a backup in its place with \`${spryCommand(`restore --force --data-dir ${root} FILE`)}\``;
  if (!existsSync(file)) {
    // A directory in which nothing was started yet has neither.
    if (!existsSync(path.join(root, "kubeconfig")))
      return { what: "store: none yet", isNote: true };
    return { what: "store", problem: `${file} is missing`, wayOut };
  }
  try {
    const { objects } = await checkStore(api);
    return { what: `store: ${objects} objects` };
  } catch (error) {
    return { what: "store", problem: (error as Error).message, wayOut };
  }
}

function* certificates({ pki }: Places): Generator<Finding> {
  // A folder that an older version did not have is made at the next start.
  const isThere = (file: string) => existsSync(path.join(pki, path.dirname(file)));
  const names = certificateFiles().filter(isThere);
  if (!existsSync(path.join(pki, "ca.crt")))
    return yield { what: "certificates: none yet", isNote: true };
  const problems = names.flatMap((name): Finding[] => {
    const folder = path.join(pki, path.dirname(name));
    const problem = certificateProblem(folder, path.basename(name));
    const wayOut = "it is issued again at the next start";
    return problem === undefined ? [] : [{ what: `certificate ${name}`, problem, wayOut }];
  });
  yield* problems.length > 0 ? problems : [{ what: `certificates: ${names.length}` }];
}

function* modes({ root }: Places): Generator<Finding> {
  let checked = 0;
  let exposed = 0;
  for (const name of secretFiles) {
    const file = path.join(root, name);
    const found = statSync(file, { throwIfNoEntry: false });
    if (!found) continue;
    checked++;
    if ((found.mode & 0o077) === 0) continue;
    exposed++;
    const mode = (found.mode & 0o777).toString(8).padStart(4, "0");
    yield {
      what: name,
      problem: `others may read it (mode ${mode})`,
      wayOut: `chmod ${found.isDirectory() ? 700 : 600} ${file}`,
    };
  }
  if (exposed === 0) yield { what: `files with secrets: ${checked}, for their owner only` };
}

async function* registryContent({ registry }: Places): AsyncGenerator<Finding> {
  let checked = 0;
  let damaged = 0;
  for await (const { digest, file } of damagedContent(registry, () => checked++)) {
    damaged++;
    yield {
      what: `registry content ${digest}`,
      problem: `${file} does not match its digest`,
      wayOut:
        "the registry removes it when it is next used, and what needs it is built again; or remove the file",
    };
  }
  if (damaged === 0) yield { what: `registry: ${checked} files by digest` };
}
