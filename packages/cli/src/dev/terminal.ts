/** What `spry dev` prints, and the keys that it listens to. */
import { styleText } from "node:util";
import { printable, printableLines } from "../printable.ts";

type Style = Parameters<typeof styleText>[0];

/** Styled where the output is a terminal that wants colours (`NO_COLOR`, `FORCE_COLOR`). */
const styled = (style: Style, text: string): string =>
  styleText(style, text, { stream: process.stdout, validateStream: true });

/** Lines of `spry dev` itself; the Function's own output is printed as it is. */
export class DevTerminal {
  /** The first line. */
  title(name: string, runtime: string): void {
    console.log(`${styled("bold", name)} ${styled("dim", `(${runtime})`)}`);
  }

  line(text: string): void {
    console.log(styled("dim", printableLines(text)));
  }

  good(text: string): void {
    console.log(`${styled("green", "✔")} ${text}`);
  }

  /** The place and the reason, then everything that the runtime wrote about it. */
  bad(summary: string, details?: string): void {
    console.log(`${styled("red", "✘")} ${styled("bold", printableLines(summary))}`);
    if (details && details !== summary) console.log(details.replaceAll(/^/gm, "  "));
  }

  request({
    method,
    path,
    status,
    ms,
  }: {
    method: string;
    path: string;
    status: number;
    ms: number;
  }): void {
    const style = status >= 500 ? "red" : status >= 400 ? "yellow" : "green";
    const time = ms < 10 ? ms.toFixed(1) : ms.toFixed(0);
    const shown = printable(path.length > 48 ? `${path.slice(0, 47)}…` : path);
    console.log(
      `${styled("dim", method)} ${shown} ${styled(style, String(status))} ${styled("dim", `${time} ms`)}`,
    );
  }

  clear(): void {
    if (process.stdout.isTTY) process.stdout.write("\x1b[2J\x1b[3J\x1b[H");
  }
}

/** Calls an action for each key on a terminal; returns what gives the terminal back. Ctrl-C is `q`. */
export function listenToKeys(actions: Record<string, () => void>): () => void {
  const { stdin } = process;
  if (!stdin.isTTY) return () => {};
  stdin.setRawMode(true);
  stdin.resume();
  const onData = (chunk: Buffer) => {
    for (const key of chunk.toString()) {
      const name = key === "\u0003" || key === "\u0004" ? "q" : key.toLowerCase();
      if (Object.hasOwn(actions, name)) actions[name]?.();
    }
  };
  stdin.on("data", onData);
  return () => {
    stdin.off("data", onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}
