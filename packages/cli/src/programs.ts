import path from "node:path";
import { fileURLToPath } from "node:url";

/** Location of the running bundle (bin/bundle-programs.mjs); the sources themselves have no such name. */
declare const SPRY_PROGRAM_URL: string;

/** Whether this is an installed package, whose programs were made with it. */
export const isPackage =
  typeof SPRY_PROGRAM_URL === "string" && !SPRY_PROGRAM_URL.includes("/node_modules/.cache/");

/**
 * The file of one of our programs that runs as a separate process: next to the running one when that is a bundle,
 * and the source otherwise. `source` is relative to this folder.
 */
function programFile(name: string, source: string): string {
  if (typeof SPRY_PROGRAM_URL === "string")
    return path.join(path.dirname(fileURLToPath(SPRY_PROGRAM_URL)), `${name}.js`);
  return path.join(import.meta.dirname, source);
}

/** A file that has been made with the package, next to its programs; undefined in a checkout. */
export const packagedProgram = (file: string): string | undefined =>
  isPackage ? path.join(path.dirname(fileURLToPath(SPRY_PROGRAM_URL)), file) : undefined;

/** The directory of a checkout; undefined in a package. */
export const checkoutRoot = (): string | undefined => {
  if (isPackage) return undefined;
  // The bundle of a checkout is in node_modules/.cache/spry/NAME.
  return typeof SPRY_PROGRAM_URL === "string"
    ? path.resolve(path.dirname(fileURLToPath(SPRY_PROGRAM_URL)), "../../../..")
    : path.resolve(import.meta.dirname, "../../..");
};

/** What `npx spry` starts in a checkout, which works from other directories, too; undefined in a package. */
export const checkoutProgram = (): string | undefined => {
  const root = checkoutRoot();
  return root && path.join(root, "packages/cli/bin/spry.mjs");
};

export const gatewayProgram = (): string => programFile("gateway", "gateway-main.ts");
export const certificatesProgram = (): string =>
  programFile("issue-certificates", "platform/issue-certificates.ts");
export const hostCertificateProgram = (): string =>
  programFile("issue-host-certificate", "platform/issue-host-certificate.ts");
/** The thread of the events' queue; undefined: its room's own source. */
export const queueProgram = (): string | undefined =>
  typeof SPRY_PROGRAM_URL === "string" ? programFile("queue", "") : undefined;

/** What the processes of the platform are started with: little garbage is kept for long. */
export const nodeOptions = ["--max-semi-space-size=2"];
