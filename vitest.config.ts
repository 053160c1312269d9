import { defineConfig } from "vitest/config";

/** A condition that holds later than expected has still come true: a busy machine is no failure. */
const expect = { poll: { timeout: 15_000 } };
/** Far above what several such conditions may take one after the other: it only ends what would never end. */
const limits = { testTimeout: 60_000, hookTimeout: 60_000 };
/** Builds and Pods are behind it. */
const patient = { poll: { timeout: 60_000 } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          expect,
          include: ["packages/*/src/**/*.test.ts", "tools/**/*.test.ts"],
          ...limits,
        },
      },
      {
        // Every clause over HTTP on real processes: with `npm test`, not with each check.
        test: {
          name: "runtimes",
          expect,
          include: ["runtimes/*/src/**/*.test.ts"],
          ...limits,
        },
      },
      {
        test: {
          name: "conformance",
          expect,
          include: ["test/conformance/**/*.test.ts"],
          ...limits,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "e2e",
          expect: patient,
          include: ["test/e2e/**/*.test.ts"],
          globalSetup: "test/support/shared-installation.ts",
          testTimeout: 240_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "cluster",
          expect: patient,
          include: ["test/cluster/**/*.test.ts"],
          testTimeout: 120_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
      {
        test: {
          name: "differential",
          expect,
          include: ["test/differential/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 120_000,
          fileParallelism: false,
        },
      },
    ],
  },
});
