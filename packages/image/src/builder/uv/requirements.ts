import { type SourceFile } from "../function-source.ts";
import { requirementsFile } from "../requirements-files.ts";
import { NotForUv } from "./not-for-uv.ts";
import { type PackageSources } from "./package-sources.ts";

/** Requirements that mean to uv what they mean to pip. */
export interface PlainRequirements {
  /** The files without the lines that say where packages are. */
  files: { path: string; text: string }[];
  /** Every package has a hash, and is to be checked against it. */
  hashed: boolean;
  /** They say which packages may or must be built from source. */
  hasFormats: boolean;
}

/** `name[extras] versions; markers --hash=…`: nothing from a path, a URL or a repository (PEP 508). */
const plainRequirement =
  /^[A-Za-z0-9][\w.-]*\s*(?:\[[\w\s,.-]*\])?\s*(?:\(?[<>=!~][^;@/$]*)?(?:;[^@/$]*?)?(?:\s+--hash[= ]\w+:[0-9a-fA-F]+)*$/;
const included = /^(?:-r|-c|--requirement|--constraint)[\s=]*([^:$/\s=][^:$]*)$/;
const formats = /^--(?:no|only)-binary[\s=]+[\w.,:-]+$/;
const sourceOption =
  /^(?:(-i|-f)\s*|(--index-url|--extra-index-url|--find-links|--trusted-host)[\s=]+)([^\s$]+)$/;

/**
 * Takes the lines that say where packages are out of requirements, and adds them to `sources` by pip's rules
 * (`handle_option_line`). Throws `NotForUv` for what uv has no equal of, or takes otherwise.
 */
export function plainRequirements(
  files: readonly SourceFile[],
  sources: PackageSources,
): PlainRequirements {
  let hashed = false;
  let hasFormats = false;
  const plain = files.map(({ path, content }) => {
    const kept = logicalLines(content.toString()).filter((line) => {
      hashed ||= /\s--hash[= ]|^--require-hashes$/.test(line);
      hasFormats ||= formats.test(line);
      const isKept = plainRequirement.test(line) || included.test(line) || formats.test(line);
      if (isKept || line === "--require-hashes") return isKept;
      // Where these stand in several files, it is their order that counts.
      if (path !== requirementsFile || !takeSource(line, sources))
        throw new NotForUv(`uv has no equivalent of a line in ${path}`);
      return false;
    });
    return { path, text: [...kept, ""].join("\n") };
  });
  return { files: plain, hashed, hasFormats };
}

/** Whether the line said where packages are. */
function takeSource(line: string, sources: PackageSources): boolean {
  if (line === "--no-index") {
    sources.noIndex = true;
    return true;
  }
  const [, short, long, value = ""] = sourceOption.exec(line) ?? [];
  const option = short ?? long;
  if (option === undefined) return false;
  if (option === "-f" || option === "--find-links") sources.findLinks.push(value);
  else if (option === "--trusted-host") sources.trustedHosts.push(value);
  else if (option === "--extra-index-url") sources.extraIndexes.push(value);
  else {
    sources.index = value;
    sources.extraIndexes = [];
  }
  return true;
}

/** Without comments and empty lines; one that ends with a backslash goes on in the next. */
function logicalLines(text: string): string[] {
  return text
    .replace(/^\uFEFF/, "")
    .replace(/\\\r?\n/g, " ")
    .split(/\r?\n/)
    .map((line) => line.replace(/(^|\s)#.*$/, "").trim())
    .filter((line) => line !== "");
}
