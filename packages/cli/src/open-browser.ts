import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { tryProgram } from "@spry/kube";

/** Opens an address in the user's browser; calls `onFailure` when none can be started. Not for secret addresses: see `openLogin`. */
export function openBrowser(url: string, onFailure: () => void): void {
  const commands: Partial<Record<NodeJS.Platform, string[]>> = {
    darwin: ["open"],
    win32: ["cmd", "/c", "start", ""],
  };
  const [command = "", ...args] = commands[process.platform] ?? ["xdg-open"];
  const child = tryProgram(command, [...args, url], { stdio: "ignore", detached: true });
  if ("failure" in child) return void child.failure.then(onFailure);
  child.on("exit", (code) => {
    if (code !== 0) onFailure();
  });
  child.unref();
}

/** A browser that is started first takes a while. */
const defaultKeptSeconds = 60;

/**
 * The same for a link with a login's code. All users of a machine can read the command lines of its processes: the browser
 * gets the name of a file instead, which only this user can read, and which leads on to the link.
 */
export function openLogin(
  url: string,
  onFailure: () => void,
  { keptSeconds = defaultKeptSeconds }: { keptSeconds?: number } = {},
): void {
  const directory = mkdtempSync(path.join(tmpdir(), "spry-login-"));
  const file = path.join(directory, "login.html");
  writeFileSync(file, redirectTo(url), { mode: 0o600, flag: "wx" });
  openBrowser(pathToFileURL(file).href, onFailure);
  removeLater(directory, keptSeconds);
}

/** Our own link: there is nothing in it that HTML would read differently. */
const redirectTo = (url: string): string => `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${url}">
<title>Spry</title>
<p><a href="${url}">Open the dashboard</a></p>
`;

/** Also when this process has ended by then, as `spry dashboard` has. */
function removeLater(directory: string, seconds: number): void {
  const remove = () => rmSync(directory, { recursive: true, force: true });
  if (process.platform === "win32") {
    setTimeout(remove, seconds * 1000);
    return;
  }
  const script = 'sleep "$1"; rm -rf -- "$2"';
  const args = ["-c", script, "sh", String(seconds), directory];
  const child = tryProgram("/bin/sh", args, { stdio: "ignore", detached: true });
  if ("failure" in child) remove();
  else child.unref();
}
