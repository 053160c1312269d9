/** What Istio's CNI plugin does in a Pod's network namespace: redirects what comes in and goes out to the proxy. */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { redirected } from "./mesh.ts";
import { type Platform } from "./platform.ts";

/** Why it cannot be done here; empty if it can. */
export const whyNotRedirected =
  process.env["SPRY_TEST_SANDBOX"] === "process"
    ? ": Pods have no network of their own"
    : process.getuid?.() !== 0
      ? ": only root makes rules in network namespaces"
      : ["/usr/sbin/nft", "/usr/sbin/runc"].every((file) => existsSync(file))
        ? ""
        : ": nft or runc is missing";

const rules = `
table ip mesh {
  chain prerouting {
    type nat hook prerouting priority -100;
    tcp dport ${redirected.program} redirect to :${redirected.inbound}
  }
  chain output {
    type nat hook output priority -100;
    meta skuid ${redirected.user} return
    ip daddr 127.0.0.0/8 return
    tcp dport 80 redirect to :${redirected.outbound}
  }
}
`;

const inNamespace = (name: string, program: string, args: string[], input = "") =>
  execFileSync("nsenter", [`--net=/run/netns/${name}`, program, ...args], {
    input,
    encoding: "utf8",
    stdio: ["pipe", "pipe", "ignore"],
  });

function namespaceOf(ip: string): string | undefined {
  return readdirSync("/run/netns").find((name) => {
    try {
      return inNamespace(name, "ip", ["-4", "-o", "address"]).includes(` ${ip}/`);
    } catch {
      return false;
    }
  });
}

/** Redirects each Pod of a namespace that has a sidecar, once it has an address; ends with the signal. */
export async function redirectPods(
  platform: Platform,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  const done = new Set<string>();
  while (!signal.aborted) {
    const { stdout } = await platform.kubectl(["get", "pods", "-n", namespace, "-o", "json"]);
    const { items = [] } = JSON.parse(stdout || "{}") as {
      items?: {
        metadata: { uid: string; annotations?: Record<string, string> };
        status?: { podIP?: string };
      }[];
    };
    for (const { metadata, status } of items) {
      const isMine = metadata.annotations?.["sidecar.istio.io/status"] === "redirect";
      if (!isMine || done.has(metadata.uid) || !status?.podIP) continue;
      const name = namespaceOf(status.podIP);
      if (name === undefined) continue;
      inNamespace(name, "nft", ["-f", "-"], rules);
      done.add(metadata.uid);
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
