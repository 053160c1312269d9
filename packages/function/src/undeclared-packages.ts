import { dependenciesOf } from "./dependencies.ts";
import { runtimeOf } from "./runtimes.ts";
import { type Function } from "./types.ts";

/**
 * npm packages that Functions for Kyma may use without declaring them, with the versions that they get: Kyma's images
 * have their server's packages in a folder above the Function's, where Node.js looks next. Packages that record or
 * export traces and metrics are left out: those are the business of the server.
 */
export const broughtPackages: Readonly<Record<string, string>> = {
  "@opentelemetry/api": "^1.9.0",
  "@opentelemetry/propagator-b3": "^2.0.1",
  axios: "^1.3.3",
  "body-parser": "^2.2.2",
  cloudevents: "^10.0.0",
  co: "^4.6.0",
  express: "^5.1.0",
  morgan: "^1.10.0",
  mz: "^2.7.0",
};

/** A package and its versions, as npm reads it. */
export const packageSpec = (name: string) => `${name}@${broughtPackages[name]}`;

/** Fields of a package.json that declare packages. */
export interface Declaring {
  dependencies?: unknown;
  optionalDependencies?: unknown;
  peerDependencies?: unknown;
  devDependencies?: unknown;
  scripts?: unknown;
}

/**
 * No parser: what is found in a comment or a text costs an installation, and no more. Time is linear, whatever the
 * text; of the blanks in it, no two repetitions can share any.
 */
const mention = new RegExp(
  String.raw`\b(?:require\s*\(\s*|from\s*|import\s*(?:\(\s*)?)(["'])(${Object.keys(broughtPackages).join("|")})(?:/[^"'\n]*)?\1`,
  "g",
);

/** Those of the brought packages that a text requires or imports and no package.json above it declares, in order. */
export function undeclaredPackages(text: string, manifests: () => readonly Declaring[]): string[] {
  const names = new Set<string>();
  for (const [, , name] of text.matchAll(mention)) if (name !== undefined) names.add(name);
  if (names.size === 0) return [];
  const declaring = manifests();
  return [...names].filter((name) => !declaring.some((each) => declares(each, name))).sort();
}

/** Those of an inline Function; for a Git source only the builder knows them. */
export function undeclaredOf(fn: Function): string[] {
  const { inline } = fn.spec.source;
  if (!inline || runtimeOf(fn).language !== "nodejs") return [];
  return undeclaredPackages(inline.source, () => {
    try {
      return [(JSON.parse(dependenciesOf(fn)) ?? {}) as Declaring];
    } catch {
      // The builder will say what is wrong with it.
      return [];
    }
  });
}

/** DevDependencies are there for a build script alone, which puts what the code needs of them into what it makes. */
function declares(manifest: Declaring, name: string): boolean {
  const { dependencies, optionalDependencies, peerDependencies, devDependencies } = manifest;
  const fields = [dependencies, optionalDependencies, peerDependencies];
  if (has(manifest.scripts, "build")) fields.push(devDependencies);
  return fields.some((field) => has(field, name));
}

const has = (field: unknown, name: string) =>
  typeof field === "object" && field !== null && Object.hasOwn(field, name);
