/** Output of containers, line by line, as it is written. */
import { type Pod } from "@spry/kube/browser";
import { levelOf, type LogLevel, printable } from "../state/log-text.ts";
import { openStream } from "./tab-connection.ts";

export interface LogLine {
  id: number;
  pod: string;
  /** RFC 3339 */
  time: string;
  text: string;
  level: LogLevel;
}

/** How many earlier lines of each Pod are shown. */
const tailLines = 500;
const maxLineLength = 16 * 1024;
const retryMs = 1_000;

let nextId = 1;

/** Follows a Pod's first container until the function returned is called; also through restarts. */
export function followLog(
  { metadata, spec }: Pod,
  onLines: (lines: LogLine[]) => void,
  onProblem: (message: string) => void = () => {},
): () => void {
  const { namespace = "", name = "" } = metadata;
  const container = spec?.containers[0]?.name ?? "";
  let isEnded = false;
  let close = () => {};
  let lastTime = "";
  const open = () => {
    let status = 0;
    let rest = "";
    const query = new URLSearchParams({ follow: "true", timestamps: "true", container });
    // After a lost connection: everything since then, to the second; lines that have been shown are skipped.
    if (lastTime === "") query.set("tailLines", String(tailLines));
    else query.set("sinceTime", lastTime.replace(/\.\d+Z$/, "Z"));
    const from = lastTime;
    close = openStream(`/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`, {
      onHead: (code) => (status = code),
      onData(text) {
        rest += text;
        if (status !== 200) return;
        const lines = rest.split("\n");
        rest = (lines.pop() ?? "").slice(0, maxLineLength);
        const found = lines.map((line) => lineOf(name, line)).filter(({ time }) => time > from);
        lastTime = found.at(-1)?.time ?? lastTime;
        if (found.length > 0) onLines(found);
      },
      onEnd() {
        if (status !== 200 && rest !== "") onProblem(messageIn(rest));
        if (!isEnded) timer = setTimeout(open, retryMs);
      },
    });
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  open();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    close();
  };
}

function lineOf(pod: string, line: string): LogLine {
  const space = line.indexOf(" ");
  const text = printable(line.slice(space + 1, space + 1 + maxLineLength));
  return { id: nextId++, pod, time: line.slice(0, Math.max(space, 0)), text, level: levelOf(text) };
}

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text;
  }
}
