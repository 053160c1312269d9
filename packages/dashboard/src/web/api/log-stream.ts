/** Output of containers, line by line, as it is written. */
import { type Pod } from "@spry/kube/browser";
import { LineReader, lineOf, type LogLine } from "../state/log-lines.ts";
import { client } from "./client.ts";
import { openStream } from "./tab-connection.ts";

/** How many earlier lines of each Pod are shown. */
export const tailLines = 500;
const retryMs = 1_000;

/** Follows a Pod's first container until the function returned is called; also through restarts, with the output before them. */
export function followLog(
  pod: Pod,
  onLines: (lines: LogLine[]) => void,
  onProblem: (message: string) => void = () => {},
): () => void {
  const { namespace = "", name = "" } = pod.metadata;
  const container = pod.spec?.containers[0]?.name ?? "";
  let isEnded = false;
  let close = () => {};
  let lastTime = "";
  const path = `/api/v1/namespaces/${namespace}/pods/${name}/log`;
  const open = () => {
    let status = 0;
    const lines = new LineReader();
    const query = new URLSearchParams({ follow: "true", timestamps: "true", container });
    // After a lost connection: everything since then, to the second; lines that have been shown are skipped.
    if (lastTime === "") query.set("tailLines", String(tailLines));
    else query.set("sinceTime", lastTime.replace(/\.\d+Z$/, "Z"));
    const from = lastTime;
    close = openStream(`${path}?${query}`, {
      onHead: (code) => (status = code),
      onData(text) {
        const complete = lines.add(text);
        if (status !== 200) return;
        const found = complete.map((line) => lineOf(name, line)).filter(({ time }) => time > from);
        lastTime = found.at(-1)?.time ?? lastTime;
        if (found.length > 0) onLines(found);
      },
      onEnd() {
        const { rest } = lines;
        if (status !== 200 && rest !== "") onProblem(messageIn(rest));
        // What a container has written last may have no line end.
        else if (rest !== "" && lineOf(name, rest).time > lastTime) onLines([lineOf(name, rest)]);
        if (!isEnded) timer = setTimeout(open, retryMs);
      },
    });
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  open();
  const showEarlierRun = async () => {
    const query = new URLSearchParams({
      previous: "true",
      timestamps: "true",
      container,
      tailLines: String(tailLines),
    });
    const response = await client.raw("GET", `${path}?${query}`);
    const lines = new LineReader();
    const found = lines.add(`${await response.text()}\n`).filter(Boolean);
    if (!isEnded) onLines(found.map((line) => lineOf(name, line)));
  };
  // It may have been removed meanwhile.
  if (hasEarlierRun(pod)) void showEarlierRun().catch(() => undefined);
  return () => {
    isEnded = true;
    clearTimeout(timer);
    close();
  };
}

/** Whether something has run before what runs now. While a container waits for its restart, its last run is what is followed. */
const hasEarlierRun = ({ status }: Pod): boolean =>
  status?.containerStatuses?.some(
    ({ state, lastState }) => state?.running !== undefined && lastState?.terminated !== undefined,
  ) ?? false;

/** Whether a container of a Pod has written, or may have: also one that waits for its restart after a crash. */
export const hasOutput = ({ status }: Pod): boolean =>
  status?.containerStatuses?.some(
    ({ state, lastState }) => state?.running ?? state?.terminated ?? lastState?.terminated,
  ) ?? false;

function messageIn(text: string): string {
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text;
  }
}
