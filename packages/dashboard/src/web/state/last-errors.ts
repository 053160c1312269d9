/** Errors in the output of a Function, with their stacks, as runtimes write them line by line. */
import { type LogLine } from "./log-lines.ts";
import { type Place, placeIn } from "./place-in-code.ts";

export interface FoundError {
  id: number;
  pod: string;
  time: string;
  title: string;
  /** Without the title; empty when only one line was written. */
  stack: string;
  place: Place | undefined;
  /** Of the request, where the log has it (`FUNC_LOG_FORMAT`). */
  request: string | undefined;
}

const stackLine =
  /^\s+at |^\s+File "|^\s{2,}\S|^Traceback |^\s*\^+\s*$|^\s*(?:\[cause\]|Caused by):/;
/** The last line of a traceback of Python, which comes after the places. */
const pythonEnd = /^[\w.]*(?:Error|Exception|Warning|Interrupt)\b/;
const maxStackLines = 40;

/** The newest first. Lines of a stack follow their error, from the same Pod. */
export function errorsIn(lines: readonly LogLine[]): FoundError[] {
  const found: FoundError[] = [];
  const open = new Map<string, { error: FoundError; stack: string[] }>();
  const close = (pod: string) => {
    const last = open.get(pod);
    open.delete(pod);
    if (!last) return;
    const { error, stack } = last;
    error.stack = stack.join("\n");
    error.place ??= placeIn(error.stack);
  };
  for (const line of lines) {
    const { pod, text, level } = line;
    const current = open.get(pod);
    if (current && current.stack.length < maxStackLines) {
      if (stackLine.test(text)) {
        current.stack.push(text);
        continue;
      }
      const isEnd = current.stack.some((each) => each.startsWith("Traceback"));
      if (isEnd && pythonEnd.test(text)) {
        current.stack.push(text);
        close(pod);
        continue;
      }
    }
    close(pod);
    if (level !== "error") continue;
    const error = errorOf(line);
    found.push(error);
    open.set(pod, { error, stack: error.stack === "" ? [] : error.stack.split("\n") });
  }
  for (const pod of open.keys()) close(pod);
  return found.reverse();
}

/** A line of JSON has the whole stack. */
function errorOf({ id, pod, time, text }: LogLine): FoundError {
  const structured = text.startsWith("{") ? messageIn(text) : undefined;
  const message = structured?.message ?? text;
  const [title = "", ...stack] = message.split("\n");
  const named = /^\S+Z? +ERROR +\[([\w.:+/=-]{1,128})\] (.*)$/.exec(title);
  return {
    id,
    pod,
    time,
    title: named?.[2] ?? title,
    stack: stack.join("\n"),
    place: placeIn(message),
    request: structured?.request ?? named?.[1],
  };
}

function messageIn(text: string): { message: string; request: string | undefined } | undefined {
  try {
    const { message, msg, invocation, requestId } = JSON.parse(text) as Record<string, unknown>;
    const found = [message, msg].find((each) => typeof each === "string");
    const request = [invocation, requestId].find((each) => typeof each === "string");
    return typeof found === "string" ? { message: found, request: request } : undefined;
  } catch {
    return undefined;
  }
}

/** The same error, with how often it is there; the newest of each. */
export function grouped(errors: readonly FoundError[]): (FoundError & { count: number })[] {
  const found = new Map<string, FoundError & { count: number }>();
  for (const error of errors) {
    const key = `${error.title}\n${error.stack}`;
    const known = found.get(key);
    if (known) known.count++;
    else found.set(key, { ...error, count: 1 });
  }
  return [...found.values()];
}
