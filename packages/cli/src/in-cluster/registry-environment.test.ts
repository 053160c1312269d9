import { describe, expect, test } from "vitest";
import { defaultCleaning, registryEnvironment } from "./registry-environment.ts";

const needed = { REGISTRY_KEY: "k" };

describe("what the registry's Pod says", () => {
  test("has defaults, and leaves a tenth of the volume for what is on the way", () => {
    expect(registryEnvironment({ ...needed, REGISTRY_VOLUME_SIZE: "10Gi" })).toEqual({
      dir: "/var/lib/registry",
      key: "k",
      quotaBytes: 9 * 1024 ** 3,
      images: {},
      cleaning: defaultCleaning,
    });
  });

  test("may be about cleaning in part", () => {
    const { cleaning } = registryEnvironment({
      ...needed,
      REGISTRY_CLEANING: '{"previousImages":0}',
    });
    expect(cleaning).toEqual({ ...defaultCleaning, previousImages: 0 });
  });

  test.each([
    [{}, "REGISTRY_KEY is not set"],
    [{ ...needed, SPRY_IMAGES: "[]" }, "SPRY_IMAGES must be a JSON object"],
    [{ ...needed, REGISTRY_CLEANING: "no" }, "REGISTRY_CLEANING is not a JSON object"],
    [{ ...needed, REGISTRY_CLEANING: "1" }, "REGISTRY_CLEANING is not a JSON object"],
    [
      { ...needed, REGISTRY_CLEANING: '{"graceSeconds":-1}' },
      "graceSeconds is -1, not a whole number from 1 to 86400",
    ],
  ])("%j is refused: %s", (env, why) => {
    expect(() => registryEnvironment(env)).toThrow(why);
  });
});
