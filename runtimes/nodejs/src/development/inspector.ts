import { open, url, waitForDebugger } from "node:inspector";

/**
 * Opens Node.js' inspector where `FUNC_INSPECT` says: `1` or `true` (127.0.0.1:9229), a port, or
 * `host:port`; with `,wait` after it, the Function is loaded when a debugger has come.
 */
export function openInspector(where: string): void {
  if (url() !== undefined) return;
  const [place = "", wait] = where.split(",");
  const [, host = "127.0.0.1", port = "9229"] = /^(?:(.+):)?(\d{2,5})$/.exec(place) ?? [];
  open(Number(port), host);
  if (wait === "wait") waitForDebugger();
}
