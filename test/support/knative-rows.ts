/** Which of Knative's own tests are run (docs/knative.md names the others, with the reason), and the settings that they are for. */
import { test } from "vitest";
import { type KnativeTests } from "./knative-suite.ts";

const rowMs = 300_000;

/** All of `test/conformance/api/v1`. */
const api = [
  "BlueGreenRoute",
  "ServiceWithTrafficSplit",
  "RevisionGetAndList",
  "RevisionTimeout",
  "RouteGetAndList",
  "RouteCreation",
  "ConfigurationGetAndList",
  "UpdateConfigurationMetadata",
  "ServiceCreateListAndDelete",
  "ServiceCreateAndUpdate",
  "ServiceBYOName",
  "ServiceCreateWithMultipleContainers",
  "ServiceCreateWithEmptyDir",
  "AnnotationPropagation",
  "ServiceGenerateName",
  "RouteAndConfigGenerateName",
  "ServiceAccountValidation",
  "SingleConcurrency",
  "CustomResourcesLimits",
  "ContainerErrorMsg",
  "ContainerExitingMsg",
  "ConfigMapVolume",
  "ProjectedConfigMapVolume",
  "SecretVolume",
  "ProjectedSecretVolume",
  "ProjectedComplex",
  "ProjectedServiceAccountToken",
];
/** All of `test/conformance/runtime`. */
const runtime = [
  "CmdArgs",
  "ConfigsViaEnv",
  "LivenessWithFail",
  "MustEnvVars",
  "MustHaveCgroupConfigured",
  "MustHaveFiles",
  "MustHaveHeadersSet",
  "MustNotContainerConstraints",
  "MustRunAsUser",
  "ProbeRuntime",
  "ProbeRuntimeAfterStartup",
  "Protocols",
  "SecretsViaEnv",
  "ShouldEnvVars",
  "ShouldHaveCgroupReadOnly",
  "ShouldHaveFiles",
  "ShouldHaveHeadersSet",
  "ShouldHaveStdinEOF",
  "ShouldHaveSysctlReadOnly",
  "ShouldNotContainerConstraints",
  "ShouldRunAsUserContainerDefault",
  "WorkingDirService",
];
/** Of `test/e2e`. */
const endToEnd = [
  "HelloWorld",
  "MultipleNamespace",
  "RoutesNotReady",
  "RollbackBYOName",
  "ImagePullError",
  "DestroyPodInflight",
  "DestroyPodTimely",
  "DestroyPodWithRequests",
  "FastScaleToZero",
  "InitScalePositive",
  "ActivationScale",
  "ServiceValidationWithInvalidPodSpec",
  "WebSocket",
  "WebSocketBlueGreenRoute",
  "GRPCUnaryPing",
  "GRPCStreamingPing",
  "HelloHTTP2WithPortNameH2C",
  "MultiContainer",
  "EmptyDir",
  "ReadinessAlternatePort",
  "ReadinessPathAndQuery",
  "ReadinessGRPCProbe",
  "RevisionTimeout",
  "RouteVisibilityChanges",
];
/** Of packages of their own in `test/e2e`. */
const ofTheirOwn = [
  ["e2e-tagheader.test", "TagHeaderBasedRouting"],
  ["e2e-initcontainers.test", "InitContainers"],
] as const;
/** What tests of their own packages want to be switched on. */
export const features = {
  "tag-header-based-routing": "Enabled",
  "kubernetes.podspec-init-containers": "Enabled",
};
/** `config-gc` for TestRevisionGC. */
const deleteAtOnce = {
  "min-non-active-revisions": "0",
  "max-non-active-revisions": "0",
  "retain-since-create-time": "disabled",
  "retain-since-last-active-time": "disabled",
};

/** A row for each of Knative's tests, but for those of `test/e2e` that the platform rules out. */
export function knativeRows(suite: KnativeTests, ruledOut: readonly string[] = []): void {
  test.each(api)(
    "conformance, API: Test%s",
    (name) => suite.run({ program: "conformance.test", name }, rowMs),
    rowMs,
  );
  test(
    "conformance, API: TestDomainMapping",
    () => suite.run({ program: "conformance-v1beta1.test", name: "DomainMapping" }, rowMs),
    rowMs,
  );
  test.each(runtime)(
    "conformance, runtime: Test%s",
    (name) => suite.run({ program: "conformance-runtime.test", name }, rowMs),
    rowMs,
  );
  test.each(endToEnd.filter((name) => !ruledOut.includes(name)))(
    "end to end: Test%s",
    (name) => suite.run({ program: "e2e.test", name }, rowMs),
    rowMs,
  );
  test.each(ofTheirOwn)(
    "end to end, %s: Test%s",
    (program, name) => suite.run({ program, name }, rowMs),
    rowMs,
  );
  test(
    "end to end, with Revisions deleted at once: TestRevisionGC",
    async () => {
      await suite.configure("config-gc", deleteAtOnce);
      await suite.run({ program: "e2e-gc.test", name: "RevisionGC" }, rowMs);
    },
    rowMs,
  );
}
