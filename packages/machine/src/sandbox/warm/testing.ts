/**
 * The beginning of a runtime as small as can be: it waits for its Function (runtime-contract.md 1.5), whose directory is then
 * `directory`.
 */
export const waitForFunction = `
const { closeSync, readFileSync, writeSync } = require("node:fs");
let directory = __dirname + "/function";
if (process.env.SPRY_WARM_FD) {
  writeSync(3, "waiting\\n");
  const line = readFileSync(4, "utf8");
  closeSync(4);
  if (line === "") process.exit(0);
  const message = JSON.parse(line);
  process.chdir((directory = message.directory));
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, message.env);
}
`;
