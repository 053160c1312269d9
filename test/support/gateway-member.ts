/**
 * Program: a gateway of several, as its Pods are on a cluster. Arguments: a kubeconfig, the file of the token for counts, its port, and that for
 * administration. It prints `ready` when it listens.
 */
import { readFileSync } from "node:fs";
import { createGateway } from "@spry/gateway";
import { httpsTransport, KubeClient, loadKubeconfig } from "@spry/kube";

const [kubeconfig, tokenFile = "", port = "", admin = ""] = process.argv.slice(2);
const host = "127.0.0.1";
const gateway = createGateway({
  client: new KubeClient(httpsTransport(loadKubeconfig(kubeconfig))),
  countsToken: () => readFileSync(tokenFile, "utf8").trim(),
  drainMs: 5_000,
  admission: {
    namespace: "default",
    front: `${host}:${port}`,
    admin: `${host}:${admin}`,
    leaseDurationMs: 3_000,
  },
});
const administration = await gateway.listenAdmin({ host, port: Number(admin) });
const server = await gateway.listen({ host, port: Number(port) });
await gateway.ready;
console.log("ready");
process.once("SIGTERM", () => {
  void server.close().then(async () => {
    await administration.close();
    process.exit(0);
  });
});
