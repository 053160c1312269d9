/**
 * The tests that Knative Serving itself is released by, unmodified, on a real cluster where Spry serves Knative's API, next to
 * `knative.full.test.ts` for one machine. Those that a cluster or this node rules out are named in docs/knative.md.
 */
import { existsSync } from "node:fs";
import { type EndpointSlice, resources } from "@spry/kube";
import { afterAll, beforeAll, describe } from "vitest";
import { gatewayName } from "../../../packages/cli/src/install/gateway.ts";
import { knativeProgram } from "../../../tools/foreign-tools/knative.ts";
import { InstalledCluster, whyNoInstallation } from "../../support/installed-cluster.ts";
import { features, knativeRows } from "../../support/knative-rows.ts";
import { ingress, type KnativePlace, KnativeTests } from "../../support/knative-suite.ts";
import { run } from "../../support/platform.ts";

const reason = existsSync(knativeProgram("e2e.test"))
  ? whyNoInstallation()
  : "needs: npm run foreign-tools";
/** Needs a controller that may create Pods, which it may not on a cluster. */
const ruledOut = ["ServiceValidationWithInvalidPodSpec"];
const system = "kyma-system";

const cluster = new InstalledCluster();
const place: KnativePlace = {
  get kubeconfig() {
    return cluster.kubeconfig;
  },
  get nodeAddress() {
    return cluster.nodeAddress;
  },
  get registry() {
    return cluster.imageRegistry;
  },
  async k(command, input) {
    const args = ["--kubeconfig", cluster.kubeconfig, ...command.split(" ")];
    const { code, stdout, stderr } = await run("kubectl", args, input);
    if (code !== 0) throw new Error(`kubectl ${command}: ${stderr}${stdout}`);
    return stdout;
  },
};
const suite = new KnativeTests(place);

/** The suite's Service has no selector: its addresses are those of the gateway's own Service. */
async function leadToGateway(): Promise<void> {
  const labelSelector = `kubernetes.io/service-name=${gatewayName}`;
  const { items } = await cluster.client.list(resources.endpointSlices, {
    namespace: system,
    labelSelector,
  });
  for (const { addressType, endpoints, ports = [] } of items) {
    const slice: EndpointSlice = {
      metadata: {
        namespace: ingress.namespace,
        generateName: "gateway-",
        labels: { "kubernetes.io/service-name": ingress.name },
      },
      addressType,
      endpoints,
      ports: ports
        .filter(({ name }) => name === "http")
        .map((port) => ({ ...port, name: "http2" })),
    };
    await cluster.client.create(resources.endpointSlices, slice);
  }
}

const title = `Knative's own tests on a cluster${reason ? ` (skipped: ${reason})` : ""}`;
describe.skipIf(reason !== undefined)(title, () => {
  beforeAll(async () => {
    await cluster.start();
    const { code, stderr } = await cluster.install();
    if (code !== 0) throw new Error(stderr);
    await place.k("create namespace knative-serving");
    await suite.prepare();
    await leadToGateway();
    await suite.configure("config-features", features);
    // Its installation has this ConfigMap; a test changes it.
    await suite.configure("config-autoscaler", {});
    // As Knative's own set-up does: public hosts differ from those inside the cluster.
    await suite.configure("config-domain", { "example.com": "" });
  }, 900_000);
  afterAll(async () => {
    await cluster.stop();
    await suite.close();
  }, 60_000);

  knativeRows(suite, ruledOut);
});
