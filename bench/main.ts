/** Program: `npm run bench -- <name>`. Every figure is also given in ν, the time of an empty Node.js process. */
const benches: Record<string, () => Promise<{ run(): Promise<void> }>> = {
  api: () => import("./api.ts"),
  build: () => import("./build.ts"),
  controller: () => import("./controller.ts"),
  cli: () => import("./cli.ts"),
  deploy: () => import("./deploy.ts"),
  events: () => import("./events.ts"),
  exposure: () => import("./exposure.ts"),
  "from-zero": () => import("./from-zero.ts"),
  gateway: () => import("./gateway.ts"),
  noise: () => import("./noise.ts"),
  pods: () => import("./pods.ts"),
  runtime: () => import("./runtime.ts"),
  "runtime-dependencies": () => import("./runtime-dependencies.ts"),
  "runtime-python": () => import("./runtime-python.ts"),
  "runtime-limits": () => import("./runtime-limits.ts"),
  serving: () => import("./serving.ts"),
  soak: () => import("./soak.ts"),
  tls: () => import("./tls.ts"),
};

const [name = ""] = process.argv.slice(2);
const bench = benches[name];
if (!bench) {
  console.error(`Which benchmark? npm run bench -- ${Object.keys(benches).join(" | ")}`);
  process.exit(2);
}
await (await bench()).run();
