import { afterEach, expect, test, vi } from "vitest";
import { whyNoNode } from "./requirements.ts";

afterEach(() => void vi.unstubAllEnvs());

test.runIf(process.platform === "linux" && process.getuid?.() === 0)(
  "a machine without the programs of a node gets the names of the packages that have them",
  () => {
    vi.stubEnv("PATH", "/nowhere");
    expect(whyNoNode()).toContain("containerd runc iptables iproute2 util-linux");
  },
);
