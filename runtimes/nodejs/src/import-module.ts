/** A parameter of the function around the bundle, as `require` is. */
declare const dynamicImport: (url: string) => Promise<unknown>;

/** `import()`, which code that V8 reads from bytecode does not have: `start.ts` lends its own. */
export const importModule = dynamicImport;
