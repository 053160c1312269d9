import { registerHooks } from "node:module";

type Exports = Record<string, unknown>;

const scheme = "spry:";
const key = Symbol.for("spry.provided-modules");

/**
 * Lets the Function's code import, or require, modules that are in no `node_modules`; each is made
 * when it is first asked for. A package of that name that the Function depends on is preferred,
 * unless the name is among `replaced`.
 */
export function provideModules(
  modules: Record<string, () => Exports>,
  replaced: readonly string[] = [],
): void {
  const made: Record<string, Exports> = {};
  Object.defineProperty(process, key, { value: made });
  // Node.js 22 has it since 22.15.
  registerHooks?.({
    resolve(specifier, context, nextResolve) {
      if (!Object.hasOwn(modules, specifier)) return nextResolve(specifier, context);
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
      const exports = (made[name] ??= modules[name]?.() ?? {});
      return { format, source: sourceOf(name, exports, format), shortCircuit: true };
    },
  });
}

function sourceOf(name: string, exports: Exports, format: string): string {
  const from = `process[Symbol.for(${JSON.stringify(key.description)})][${JSON.stringify(name)}]`;
  if (format === "commonjs") return `module.exports = ${from};`;
  const names = Object.keys(exports).join(", ");
  return `const provided = ${from};\nexport default provided;\nexport const { ${names} } = provided;\n`;
}
