import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { patience } from "./test/kit/patience.ts";

/** A condition that holds later than expected has still come true: a busy machine is not a failure. */
const inProcess = {
  expect: { poll: { timeout: patience.condition } },
  testTimeout: patience.test,
  hookTimeout: patience.test,
};
/** Builds and Pods are behind its conditions, and a process of kubectl behind most of its questions. */
const wholePlatforms = {
  expect: { poll: { timeout: patience.platform, interval: 250 } },
  testTimeout: patience.platformTest,
  hookTimeout: patience.cluster,
};
const setupFiles = [new URL("./test/kit/scratch-folder.ts", import.meta.url).pathname];

/**
 * What only `npm run test:full` runs, because a faster row covers the same fact in `npm test`, is in files of this name.
 * A variable rather than a project of its own: such a file keeps the settings of the project that it belongs to.
 */
const inFull = "**/*.full.test.ts";
/** A process loads the rooms once, not again for each file: a third of what the unit tests would take. */
const isolate = false;
const onCluster = process.env["SPRY_TEST_ENGINE"] === "cluster";

const exclude = process.env["SPRY_TEST_FULL"] ? [] : [inFull];

/**
 * Files of rooms whose rows start package installers, Git, containers, whole machines or crashing processes, or keep a processor
 * or a disk busy for seconds: nearly half of the time of all rows next to the code, in one file of fifteen.
 */
const processes = [
  "packages/image/src/builder/**/*.test.ts",
  "packages/machine/src/machine*.test.ts",
  "packages/machine/src/{sandbox,network/pods}/**/*.test.ts",
  "packages/apiserver/src/store/{crash,power-loss,store-too-large}.test.ts",
  "packages/source/src/{fetch-source,git-server,resolve-commit,submodules,lfs/*}.test.ts",
  "packages/source/src/monorepo/monorepo.test.ts",
  "packages/apiserver/src/{turns,http/listener,http/unread-answers}.test.ts",
  "packages/queue/src/sqlite.test.ts",
  "packages/eventing/src/{eventing,outage,since-ready}.test.ts",
  "packages/gateway/src/{admission,own-host,rolling-update,http2,inside/callers}.test.ts",
  "packages/serving/src/routes.test.ts",
  "packages/cli/src/platform/{gateway-process,system-images}.test.ts",
  "packages/image/src/unpack-layer.property.test.ts",
  "packages/image/src/registry/{bounds,concurrent-cleaning}.test.ts",
  "packages/machine/src/node/images.test.ts",
  "tools/images/host-files.test.ts",
  "packages/controller/src/function/git-function.test.ts",
];

export default defineConfig({
  test: {
    // Most files wait for processes, and one in three of them keeps a processor busy.
    maxWorkers: availableParallelism() + 1,
    projects: [
      {
        test: {
          name: "unit",
          isolate,
          include: ["packages/*/src/**/*.test.ts", "tools/**/*.test.ts"],
          exclude: [...exclude, ...processes],
          setupFiles,
          ...inProcess,
        },
      },
      {
        // With `npm test`, not with each check.
        test: {
          name: "processes",
          isolate,
          include: processes,
          exclude,
          setupFiles,
          ...inProcess,
        },
      },
      {
        // Every clause over HTTP on real processes: with `npm test`, not with each check.
        test: {
          name: "runtimes",
          isolate,
          include: ["runtimes/*/src/**/*.test.ts"],
          exclude,
          setupFiles,
          ...inProcess,
        },
      },
      {
        test: {
          name: "conformance",
          isolate,
          include: ["test/conformance/**/*.test.ts"],
          exclude,
          setupFiles,
          ...inProcess,
        },
      },
      {
        test: {
          name: "e2e",
          isolate: onCluster,
          include: ["test/e2e/**/*.test.ts"],
          exclude,
          setupFiles,
          globalSetup: "test/support/shared-installation.ts",
          // On a cluster all files share one installation and its namespaces.
          fileParallelism: !onCluster,
          ...wholePlatforms,
        },
      },
      {
        test: {
          name: "attacks",
          isolate,
          include: ["test/attacks/**/*.test.ts"],
          exclude,
          setupFiles,
          globalSetup: "test/support/shared-template.ts",
          ...wholePlatforms,
        },
      },
      {
        test: {
          name: "cluster",
          include: ["test/cluster/**/*.test.ts"],
          exclude,
          setupFiles,
          ...wholePlatforms,
          testTimeout: patience.cluster,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "differential",
          include: ["test/differential/**/*.test.ts"],
          exclude,
          setupFiles,
          ...inProcess,
          hookTimeout: patience.cluster,
          fileParallelism: false,
        },
      },
    ],
  },
});
