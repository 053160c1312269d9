/** Program for `bench/tls.ts`: a gateway that serves one host of an APIRule over HTTPS. */
import { readFileSync } from "node:fs";
import { createApiServer } from "@spry/apiserver";
import { apiRuleCrd, gatewayCrd } from "@spry/exposure";
import { apiRules, certificatesSecretName, istioGateways } from "@spry/function";
import { createGateway } from "@spry/gateway";
import { KubeClient, resources } from "@spry/kube";

const [crt = "", key = ""] = process.argv.slice(2).map((file) => readFileSync(file, "base64"));
const namespace = "kyma-system";
const api = await createApiServer({ dataDir: ":memory:" });
const client = new KubeClient(api.transport());
for (const definition of [apiRuleCrd({ url: "https://127.0.0.1:1" }), gatewayCrd()])
  await client.create(resources.customResourceDefinitions, definition);
await client.create(resources.namespaces, { metadata: { name: namespace } });
await client.create(resources.secrets, {
  metadata: { name: certificatesSecretName, namespace },
  data: { "kyma-system.web.crt": crt, "kyma-system.web.key": key },
});
await client.create(istioGateways, {
  metadata: { name: "web", namespace },
  spec: {
    servers: [
      {
        port: { number: 443, name: "https", protocol: "HTTPS" },
        hosts: ["*.example.com"],
        tls: { mode: "SIMPLE", credentialName: "web" },
      },
    ],
  },
});
await client.create(apiRules, {
  metadata: { name: "dice", namespace },
  spec: {
    gateway: `${namespace}/web`,
    hosts: ["dice.example.com"],
    service: { name: "dice", port: 80 },
    rules: [{ path: "/*", methods: ["GET"], noAuth: true }],
  },
});
const exposure = { namespace, ownCertificates: false };
const gateway = createGateway({ client, exposure });
const server = await gateway.listen({ host: "127.0.0.1", port: 0, https: { port: 0 } });
await gateway.ready;
process.send?.(server.httpsPort);
process.on("disconnect", () => process.exit());
