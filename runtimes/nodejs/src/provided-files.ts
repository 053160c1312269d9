import type { functionsFramework } from "./dialects/functions-framework.ts";
import type { Sdk } from "./sdk.ts";

/** By which the files find what `provideModules` has made for them. */
export const providedKey = "spry.provided-modules";

const exported = {
  sdk: [
    "getTracer",
    "getCloudEvent",
    "emitCloudEvent",
    "getFunctionName",
    "getNamespace",
    "getRuntime",
    "getTimeout",
    "getBodySizeLimit",
  ] satisfies (keyof Sdk)[],
  "@google-cloud/functions-framework": [
    "http",
    "cloudEvent",
    "typed",
  ] satisfies (keyof typeof functionsFramework)[],
};

/** What a Function finds its modules by, as Node.js does: in the directories above it. */
export const providedFiles: readonly { path: string; content: Buffer }[] = Object.entries(
  exported,
).flatMap(([name, names]) => {
  const file = (path: string, text: string) => ({
    path: `node_modules/${name}/${path}`,
    content: Buffer.from(text),
  });
  // One by one, in words that Node.js understands: so that `import { getTracer } from "sdk"` works, too.
  const lines = names.map((each) => `exports.${each} = provided.${each};\n`);
  const from = `process[Symbol.for(${JSON.stringify(providedKey)})][${JSON.stringify(name)}]`;
  return [
    file("package.json", `${JSON.stringify({ name, main: "index.js" })}\n`),
    file("index.js", `const provided = ${from};\n${lines.join("")}`),
  ];
});
