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
  remark?: string;
}

/** `extensions`: of the language, in the runtime's order. `at`: where the key is, for messages. */
export function namedHandler(
  root: string,
  given: string,
  { runtime, extensions, at }: { runtime: Runtime; extensions: readonly string[]; at: string },
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
  if (!isFile(file)) throw missing(at, given, file, extensions, isFile);
  if (!extensions.some((extension) => file === `${bare}.${extension}`))
    throw new UserError(
      `${at} is ${JSON.stringify(given)}, which the runtime ${runtime.name} cannot load`,
      `name a file that ends with ${extensions.map((each) => `.${each}`).join(", ")}, or set runtime`,
    );
  const first = extensions.map((extension) => `${bare}.${extension}`).find(isFile);
  return {
    file: first ?? file,
    module: runtime.language === "python" ? bare.replaceAll("/", ".") : bare,
    ...(first !== file && {
      remark: `${first} is loaded instead of ${file}: remove one of the two`,
    }),
  };
}

/** `src/orders.main` is how others name a file and its function. */
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
  const [, name = "", called = ""] = /^(.+)\.(\w+)$/.exec(file) ?? [];
  const before = withEnd(name);
  if (before === undefined)
    return new UserError(sentence, "name a file that exists, relative to the Function's directory");
  const other = called === "main" ? "" : `, and set HANDLER_FUNC_NAME: ${called} below env`;
  return new UserError(sentence, `write ${before}, the file alone${other}`);
}
