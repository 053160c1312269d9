import { type ClusterConfig, webSocketAccess } from "@spry/kube";
import { type RawData, WebSocket } from "ws";

/** Where images have the Function's files, and `.vscode/launch.json` expects them. */
export const functionDirectory = "/usr/src/app/function";

const timeoutMs = 5_000;
const maxPath = 4096;
const stdout = 1;

/**
 * Where the container's process has the Function's files: a sandbox without a root file system of its own has them in a directory of
 * this machine. `functionDirectory` where that cannot be found out.
 */
export async function directoryInPod(
  cluster: ClusterConfig,
  { namespace, pod }: { namespace: string; pod: string },
): Promise<string> {
  const query = new URLSearchParams([
    ["command", "pwd"],
    ["command", "-P"],
    ["stdout", "true"],
  ]);
  const path = `/api/v1/namespaces/${namespace}/pods/${pod}/exec?${query}`;
  const { url, headers, tls } = await webSocketAccess(cluster, path);
  const socket = new WebSocket(url, "v4.channel.k8s.io", { headers, ...tls });
  let output = "";
  socket.on("message", (data: RawData) => {
    const message = data as Buffer;
    if (message[0] === stdout) output += message.subarray(1).toString();
    if (output.length > maxPath) socket.terminate();
  });
  const timer = setTimeout(() => socket.terminate(), timeoutMs);
  await new Promise<void>((resolve) => {
    socket.on("error", () => resolve());
    socket.on("close", () => resolve());
  });
  clearTimeout(timer);
  const [directory = ""] = output.split("\n");
  return directory.endsWith(functionDirectory) ? directory : functionDirectory;
}
