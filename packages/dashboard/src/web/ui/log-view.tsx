import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ComponentChildren } from "preact";
import { type Pod } from "@spry/kube/browser";
import { followLog, hasOutput, tailLines } from "../api/log-stream.ts";
import { type LogLine } from "../state/log-lines.ts";
import { query } from "../router.ts";
import { useKept } from "./use-kept.ts";

/** How many lines a tab keeps, and how many it shows at once. */
const maxLines = 5_000;
const maxShown = 1_000;
const noFilter = { words: "", level: "all" };
const filterShape = { words: "text", level: "text" } as const;
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
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
  /** A filter is not lost with the view; the address may have one, too. */
  const filter = useKept(`log ${label}`, noFilter, filterShape);
  const [asked, setAsked] = useState(() => query.peek().get("q") ?? undefined);
  /** The time of one request, from the address. */
  const [span, setSpan] = useState(() => spanIn(query.peek()));
  const words = asked ?? filter.value.words;
  const level = (filter.value.level in levels ? filter.value.level : "all") as keyof typeof levels;
  /** The lines as they were: what is read is not replaced. */
  const [paused, setPaused] = useState<readonly LogLine[]>();
  const [dropped, setDropped] = useState(0);
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
        setLines((before) => {
          const all = merged(before, more);
          if (all.length > maxLines) setDropped((count) => count + all.length - maxLines);
          return all.slice(-maxLines);
        });
      }, batchMs);
    };
    // The lines of a Pod that has been deleted meanwhile stay, and its stream ends by itself.
    for (const pod of pods) {
      const uid = pod.metadata.uid ?? "";
      if (!hasOutput(pod) || streams.current.has(uid)) continue;
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
  const source = paused ?? lines;
  const found = useMemo(
    () => filtered(source, words, level).filter(({ time }) => !span || isWithin(span, time)),
    [source, words, level, span],
  );
  const shown = useMemo(() => found.slice(-maxShown), [found]);
  const missing = found.length - shown.length + (paused ? 0 : dropped);
  const newer = paused ? lines.length - paused.length : 0;
  useLayoutEffect(() => {
    if (isAtEnd.current && !paused) box.current?.scrollTo(0, box.current.scrollHeight);
  }, [shown, paused]);
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
          onInput={({ currentTarget }) => {
            setAsked(undefined);
            filter.change({ words: currentTarget.value });
          }}
        />
        <select
          aria-label="Level"
          value={level}
          onChange={({ currentTarget }) => filter.change({ level: currentTarget.value })}
        >
          {Object.entries(levels).map(([value, text]) => (
            <option key={value} value={value}>
              {text}
            </option>
          ))}
        </select>
        <button
          type="button"
          aria-pressed={paused !== undefined}
          onClick={() => {
            isAtEnd.current = true;
            setPaused(paused ? undefined : lines);
          }}
        >
          {paused ? "Follow" : "Pause"}
        </button>
        <button
          type="button"
          onClick={() => {
            setLines([]);
            setDropped(0);
            if (paused) setPaused([]);
          }}
        >
          Clear
        </button>
      </div>
      {problem && <p class="error-text">{problem}</p>}
      {span && (
        <p class="row wrap">
          <span>
            Only what was written from {clockOf(span.from)} to {clockOf(span.to)}, around one
            request.
          </span>
          <button type="button" class="small" onClick={() => setSpan(undefined)}>
            Show all lines
          </button>
        </p>
      )}
      <p class="hint">
        Times are those of your time zone ({Intl.DateTimeFormat().resolvedOptions().timeZone}).
        {paused &&
          ` Paused: ${newer > 0 ? `${newer} newer lines are not shown.` : "new lines wait."}`}
      </p>
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
        {(missing > 0 || lines.length >= tailLines) && (
          <div class="mark">
            {missing > 0 ? `${missing} earlier lines are not shown. ` : ""}
            Of each Pod, the last {tailLines} lines before this view was opened are here; kubectl
            logs has the others.
          </div>
        )}
        {shown.length === 0 && (
          <div class="line muted">
            {lines.length > 0 ? "No line matches the filter." : "Nothing has been written yet."}
          </div>
        )}
        {shown.map(({ id, pod, time, text, level }) => (
          <div key={id} class="line">
            <span class="who" title={`${pod} ${time}`}>
              {clockOf(time)}
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

interface Span {
  from: string;
  to: string;
}

function spanIn(query: URLSearchParams): Span | undefined {
  const [from, to] = [query.get("from") ?? "", query.get("to") ?? ""];
  return Number.isNaN(Date.parse(from)) || Number.isNaN(Date.parse(to)) ? undefined : { from, to };
}

const isWithin = ({ from, to }: Span, time: string): boolean =>
  Date.parse(time) >= Date.parse(from) && Date.parse(time) <= Date.parse(to);

/** Sorts lines by time: the streams of several Pods arrive one after the other. */
function merged(before: LogLine[], more: LogLine[]): LogLine[] {
  const last = before.at(-1)?.time ?? "";
  const all = [...before, ...more];
  if (more.some(({ time }) => time < last) || more.length > 1)
    all.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.id - b.id));
  return all;
}

/** `14:05:09`, in the browser's time zone. */
function clockOf(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : clock.format(date);
}

function filtered(lines: readonly LogLine[], words: string, level: keyof typeof levels): LogLine[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return lines.filter(
    (line) =>
      (level === "all" || line.level === "error" || line.level === level) &&
      wanted.every((word) => line.text.toLowerCase().includes(word)),
  );
}
