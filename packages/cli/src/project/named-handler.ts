/** The key `handler` of `spry.yaml`: which file of the directory has the Function's handler. */
import { statSync } from "node:fs";
import path from "node:path";
import { type Runtime } from "@spry/function";
import { isInside } from "../inside.ts";
import { UserError } from "../user-error.ts";

/** A file and the module that it is to its runtime, which looks for it by `HANDLER_MOD_NAME`. */
export interface NamedHandler {
  file: string;
  module: string;
  /** The function of it that is named, too. */
  called?: string;
  remark?: string;
}

/**
 * `extensions`: of the language, in the runtime's order. `isBuilt`: the image's build makes files, of which the name may be one. `hasFunction`: it
 * can be `src/orders.create`, the file without its extension and a function. `at`: where the key is, for messages.
 */
export function namedHandler(
  root: string,
  given: string,
  {
    runtime,
    extensions,
    isBuilt,
    hasFunction,
    at,
  }: {
    runtime: Runtime;
    extensions: readonly string[];
    isBuilt: boolean;
    hasFunction: boolean;
    at: string;
  },
): NamedHandler {
  const file = path.posix.normalize(given);
  const isFile = (name: string) =>
    statSync(path.join(root, name), { throwIfNoEntry: false })?.isFile() ?? false;
  const isOutside = path.posix.isAbsolute(file) || file.startsWith("..");
  if (isOutside || (isFile(file) && !isInside(root, path.join(root, file))))
    throw new UserError(
      `${at} is ${JSON.stringify(given)}, which is outside of the Function's directory`,
      "name a file of the directory, relative to it",
    );
  const bare = file.replace(/\.\w+$/, "");
  const moduleOf = (name: string) =>
    runtime.language === "python" ? name.replaceAll("/", ".") : name;
  const own = hasFunction && !isFile(file) ? ofFunction(file, extensions, isFile) : undefined;
  if (own) return { file: own.file, module: moduleOf(own.name), called: own.called };
  if (!isFile(file) && !(isBuilt && /\.[cm]?js$/.test(file)))
    throw missing(at, given, file, extensions, isFile);
  if (!extensions.some((extension) => file === `${bare}.${extension}`))
    throw new UserError(
      `${at} is ${JSON.stringify(given)}, which the runtime ${runtime.name} cannot load`,
      `name a file that ends with ${extensions.map((each) => `.${each}`).join(", ")}, or set runtime`,
    );
  const first = extensions.map((extension) => `${bare}.${extension}`).find(isFile);
  return {
    file: first ?? file,
    module: moduleOf(bare),
    ...(first !== file && {
      remark: `${first} is loaded instead of ${file}: remove one of the two`,
    }),
  };
}

/** `src/orders.main` is how others name a file and its function. */
function ofFunction(
  given: string,
  extensions: readonly string[],
  isFile: (name: string) => boolean,
): { file: string; name: string; called: string } | undefined {
  const [, name = "", called = ""] = /^(.+)\.(\w+)$/.exec(given) ?? [];
  const file = extensions.map((extension) => `${name}.${extension}`).find(isFile);
  return file === undefined ? undefined : { file, name, called };
}

function missing(
  at: string,
  given: string,
  file: string,
  extensions: readonly string[],
  isFile: (name: string) => boolean,
): UserError {
  const sentence = `${at} is ${JSON.stringify(given)}, and that file does not exist`;
  const withEnd = (name: string) =>
    extensions.map((extension) => `${name}.${extension}`).find(isFile);
  const meant = withEnd(file);
  if (meant !== undefined) return new UserError(sentence, `write ${meant}`);
  const own = ofFunction(file, extensions, isFile);
  if (!own)
    return new UserError(sentence, "name a file that exists, relative to the Function's directory");
  const other = own.called === "main" ? "" : `, and set HANDLER_FUNC_NAME: ${own.called} below env`;
  return new UserError(
    sentence,
    `write ${own.file}, the file alone${other}; for a handler of AWS Lambda add \`dialect: lambda\` instead`,
  );
}
