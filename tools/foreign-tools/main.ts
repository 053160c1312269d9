/** Program: `npm run foreign-tools`. Builds the tools that test/conformance/tools runs, where they are not cached yet. */
import { buildCloudEventsProgram } from "../cloudevents-go/binary.ts";
import { buildNatsServer } from "../nats-server/binary.ts";
import { buildMissing } from "../real-apiserver/binaries.ts";
import { buildArgoRollouts } from "./argo-rollouts.ts";
import { buildCertManager } from "./cert-manager.ts";
import { downloadSources } from "./definitions.ts";
import { buildFlux } from "./flux.ts";
import { buildKeda } from "./keda.ts";
import { buildKnative } from "./knative.ts";
import { buildOciConformance } from "./oci-conformance.ts";
import { buildOperatorTests } from "./operator.ts";
import { installPythonClient } from "./python-client.ts";

await buildMissing(new AbortController().signal, ["kubectl"]);
buildOperatorTests();
buildNatsServer();
buildCloudEventsProgram();
downloadSources();
buildKnative();
installPythonClient();
buildOciConformance();
buildKeda();
buildCertManager();
buildFlux();
buildArgoRollouts();
