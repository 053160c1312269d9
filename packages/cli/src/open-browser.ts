import { spawn } from "node:child_process";

/** Opens an address in the user's browser; `onFailure` where none can be started. */
export function openBrowser(url: string, onFailure: () => void): void {
  const commands: Partial<Record<NodeJS.Platform, string[]>> = {
    darwin: ["open"],
    win32: ["cmd", "/c", "start", ""],
  };
  const [command = "", ...args] = commands[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.on("error", onFailure);
  child.on("exit", (code) => {
    if (code !== 0) onFailure();
  });
  child.unref();
}
