/** What the dashboard shows to the registry when it asks what is stored: a Secret that both have as a file. */
import { readFile } from "node:fs/promises";
import path from "node:path";
import { type KubeClient } from "@spry/kube";
import { ensureSharedToken } from "./shared-token.ts";

export const usageTokenName = "serverless-registry-usage";
const directory = "/etc/spry/registry-usage";
export const usageTokenFile = path.posix.join(directory, "token");

/** Of both Pods. They start without it: the file comes when a leader has made the Secret. */
export const usageTokenVolume = {
  name: "registry-usage",
  secret: { secretName: usageTokenName, optional: true },
};
export const usageTokenMount = { name: "registry-usage", mountPath: directory, readOnly: true };

/** For the leader. */
export const ensureUsageToken = (client: KubeClient, namespace: string): Promise<string> =>
  ensureSharedToken(client, { namespace, name: usageTokenName });

/** Read for each request: the Secret may come, or change, while the program runs. Undefined without any. */
export async function readUsageToken(file = usageTokenFile): Promise<string | undefined> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.trim() || undefined;
}
