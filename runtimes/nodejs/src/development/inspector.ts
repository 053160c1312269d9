import { type Debugger, open, Session, url, waitForDebugger } from "node:inspector";
import { pathToFileURL } from "node:url";

/**
 * Opens Node.js' inspector where `FUNC_INSPECT` says: `1` or `true` (127.0.0.1:9229), a port, or
 * `host:port`; with `,wait` after it, the Function is loaded when a debugger has come, and stops at the first line of `file`.
 */
export function openInspector(where: string, file?: string): void {
  if (url() !== undefined) return;
  const [place = "", wait] = where.split(",");
  const [, host = "127.0.0.1", port = "9229"] = /^(?:(.+):)?(\d{2,5})$/.exec(place) ?? [];
  open(Number(port), host);
  if (wait !== "wait") return;
  waitForDebugger();
  if (file !== undefined) stopAtFirstLine(file);
}

/**
 * Does for the user's file what `node --inspect-brk` does for a program, which here would be the runtime. A pause affects all
 * sessions, including the debugger's.
 */
function stopAtFirstLine(file: string): void {
  const session = new Session();
  session.connect();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url: script } }) => {
    if (script !== file && script !== pathToFileURL(file).href) return;
    const start = { scriptId, lineNumber: 0, columnNumber: 0 };
    const end = { scriptId, lineNumber: 1e6 };
    session.post(
      "Debugger.getPossibleBreakpoints",
      { start, end, restrictToFunction: true },
      (_error, found?: Debugger.GetPossibleBreakpointsReturnType) => {
        // A module of nothing but exports can be stopped at its end only.
        const [location] = found?.locations ?? [];
        if (location) session.post("Debugger.setBreakpoint", { location });
      },
    );
  });
  session.once("Debugger.paused", () => {
    // Not while it is paused: that would let the program continue.
    setImmediate(() => session.disconnect());
  });
  session.post("Debugger.enable");
}
