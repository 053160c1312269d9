/** Program: an API server on a directory with its certificates (ca, server: `.crt`, `.key`). Says its port. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { createApiServer } from "@spry/apiserver";

const [directory = "", dataDir = ":memory:"] = process.argv.slice(2);
const read = (name: string) => readFileSync(path.join(directory, name), "utf8");
const server = await createApiServer({ dataDir });
const { port } = await server.listen({
  host: "127.0.0.1",
  port: 0,
  cert: read("server.crt"),
  key: read("server.key"),
  clientCa: read("ca.crt"),
});
console.log(port);
// With the process that started it.
process.stdin.on("end", () => process.exit(0)).resume();
