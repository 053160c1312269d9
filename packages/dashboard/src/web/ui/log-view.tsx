import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ComponentChildren } from "preact";
import { type Pod } from "@spry/kube/browser";
import { followLog, type LogLine } from "../api/log-stream.ts";
import { query } from "../router.ts";

/** How many lines a tab keeps, and how many it shows at once. */
const maxLines = 5_000;
const maxShown = 1_000;
/** Lines that arrive together are shown together. */
const batchMs = 60;

const levels = { all: "All levels", warn: "Warnings and errors", error: "Errors" } as const;

/** Output of several Pods as it is written, with a filter by words (of a request’s id, for example) and by level. */
export function LogView({
  pods,
  label,
  above,
}: {
  pods: readonly Pod[];
  label: string;
  /** Shown above, made of all lines that are kept. */
  above?: (lines: readonly LogLine[]) => ComponentChildren;
}) {
  const [lines, setLines] = useState<LogLine[]>([]);
  const [words, setWords] = useState(() => query.peek().get("q") ?? "");
  const [level, setLevel] = useState<keyof typeof levels>("all");
  const [isPaused, setPaused] = useState(false);
  const [problem, setProblem] = useState("");
  const streams = useRef(new Map<string, () => void>());
  const pending = useRef<LogLine[]>([]);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);

  useEffect(() => {
    const add = (found: LogLine[]) => {
      pending.current.push(...found);
      timer.current ??= setTimeout(() => {
        timer.current = undefined;
        const more = pending.current.splice(0);
        setLines((before) => merged(before, more));
      }, batchMs);
    };
    // The lines of a Pod that has been deleted meanwhile stay, and its stream ends by itself.
    for (const pod of pods) {
      const uid = pod.metadata.uid ?? "";
      const hasOutput = pod.status?.containerStatuses?.some(
        ({ state }) => state?.running ?? state?.terminated,
      );
      if (!hasOutput || streams.current.has(uid)) continue;
      streams.current.set(uid, followLog(pod, add, setProblem));
    }
    const present = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const [uid, close] of streams.current) {
      if (present.has(uid)) continue;
      close();
      streams.current.delete(uid);
    }
  }, [pods]);
  useEffect(
    () => () => {
      for (const close of streams.current.values()) close();
      clearTimeout(timer.current);
    },
    [],
  );
  const shown = useMemo(
    () => filtered(lines, words, level).slice(-maxShown),
    [lines, words, level],
  );
  useEffect(() => {
    if (isAtEnd.current && !isPaused) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [shown, isPaused]);
  return (
    <div class="stack">
      {above?.(lines)}
      <div class="row wrap">
        <input
          type="search"
          class="grow"
          aria-label="Filter lines"
          placeholder="Filter: words, or a request’s id"
          value={words}
          onInput={({ currentTarget }) => setWords(currentTarget.value)}
        />
        <select
          aria-label="Level"
          value={level}
          onChange={({ currentTarget }) => setLevel(currentTarget.value as keyof typeof levels)}
        >
          {Object.entries(levels).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          {isPaused ? "Follow" : "Pause"}
        </button>
        <button type="button" onClick={() => setLines([])}>
          Clear
        </button>
      </div>
      {problem && <p class="error-text">{problem}</p>}
      <div
        class="log"
        ref={box}
        role="log"
        aria-label={label}
        tabIndex={0}
        onScroll={({ currentTarget: { scrollTop, scrollHeight, clientHeight } }) => {
          isAtEnd.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        {shown.length === 0 && (
          <div class="line muted">
            {lines.length > 0 ? "No line matches the filter." : "Nothing has been written yet."}
          </div>
        )}
        {shown.map(({ id, pod, time, text, level }) => (
          <div key={id} class="line">
            <span class="who" title={`${pod} ${time}`}>
              {time.slice(11, 19)}
            </span>
            {pods.length > 1 && (
              <span class="who" title={pod}>
                {pod.slice(-5)}
              </span>
            )}
            <span class={`what ${level}`}>{text}</span>
          </div>
        ))}
      </div>
    </div>
  );
}

/** Sorts lines by time: the streams of several Pods arrive one after the other. */
function merged(before: LogLine[], more: LogLine[]): LogLine[] {
  const last = before.at(-1)?.time ?? "";
  const all = [...before, ...more];
  if (more.some(({ time }) => time < last) || more.length > 1)
    all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.id - b.id));
  return all.slice(-maxLines);
}

function filtered(lines: LogLine[], words: string, level: keyof typeof levels): LogLine[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return lines.filter(
    (line) =>
      (level === "all" || line.level === "error" || line.level === level) &&
      wanted.every((word) => line.text.toLowerCase().includes(word)),
  );
}
