import { existsSync } from "node:fs";
import { providedKey } from "./provided-files.ts";

type Exports = Record<string, unknown>;

const scheme = "spry:";

/**
 * Lets the code in that directory import, or require, modules that the Function does not depend on; each is created
 * when it is first used. A package of that name that the Function depends on is preferred, unless the name is among
 * `replaced`. In an image they are files in the `node_modules` next to the directory. Where such files are missing, and
 * for packages that are replaced, hooks do the same; but every `require` goes through them, and loading them costs 2 MB of
 * memory.
 */
export function provideModules(
  directory: string,
  modules: Record<string, () => Exports>,
  replaced: readonly string[],
): void {
  const made: Record<string, Exports> = {};
  const provided = new Proxy(made, {
    get: (_, name: string) => (made[name] ??= modules[name]?.() ?? {}),
  });
  Object.defineProperty(process, Symbol.for(providedKey), { value: provided });
  const areFiles = Object.keys(modules).every((name) =>
    existsSync(`${directory}/../node_modules/${name}`),
  );
  const isReplacing = replaced.some((name) => existsSync(`${directory}/node_modules/${name}`));
  if (!areFiles || isReplacing) hook(provided, Object.keys(modules), replaced);
}

function hook(
  provided: Record<string, Exports>,
  names: readonly string[],
  replaced: readonly string[],
): void {
  // Node.js 22 has it since 22.15.
  process.getBuiltinModule("node:module").registerHooks?.({
    resolve(specifier, context, nextResolve) {
      if (!names.includes(specifier)) return nextResolve(specifier, context);
      const format = context.conditions.includes("require") ? "commonjs" : "module";
      const ours = { url: `${scheme}${format}:${specifier}`, format, shortCircuit: true };
      if (replaced.includes(specifier)) return ours;
      try {
        return nextResolve(specifier, context);
      } catch {
        return ours;
      }
    },
    load(url, context, nextLoad) {
      if (!url.startsWith(scheme)) return nextLoad(url, context);
      const [format = "", name = ""] = url.slice(scheme.length).split(/:(.*)/);
      const source = sourceOf(name, provided[name] ?? {}, format);
      return { format, source, shortCircuit: true };
    },
  });
}

function sourceOf(name: string, exports: Exports, format: string): string {
  const from = `process[Symbol.for(${JSON.stringify(providedKey)})][${JSON.stringify(name)}]`;
  if (format === "commonjs") return `module.exports = ${from};`;
  const names = Object.keys(exports).join(", ");
  return `const provided = ${from};\nexport default provided;\nexport const { ${names} } = provided;\n`;
}
