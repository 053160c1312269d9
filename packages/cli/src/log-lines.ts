/**
 * Lines of a Function's output: as it writes them, or in one of the formats of `FUNC_LOG_FORMAT` (docs/runtime-contract.md 9.5),
 * which say the level and the request that a line belongs to.
 */
import { withoutDirectory } from "./load-failure.ts";
import { printableJson } from "./printable-json.ts";
import { printableOutput } from "./printable.ts";
import { UserError } from "./user-error.ts";

/** The least severe first. */
export const levels = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof levels)[number];

export interface LogFilter {
  /** This one and more severe ones. */
  level?: LogLevel;
  /** Of the request with this id. */
  request?: string;
  /** Objects instead of lines. */
  json?: boolean;
}

interface LogLine {
  time?: string;
  level?: LogLevel;
  message: string;
  invocation?: string;
}

export function levelNamed(name: string): LogLevel {
  const found = levels.find((each) => each === name.toLowerCase());
  if (found) return found;
  throw new UserError(`${name} is not a level`, `use one of ${levels.join(", ")}`);
}

/**
 * The line as it is to be printed; undefined if the options exclude it. `isTerminal`: characters that could control a terminal are
 * removed. `run`: of a container that was restarted.
 */
export function shownLine(
  line: string,
  instance: string | undefined,
  { level, request, json = false }: LogFilter,
  isTerminal: boolean,
  run?: number,
): string | undefined {
  const parsed = level || request || json ? parse(line) : undefined;
  if (level && levels.indexOf(parsed?.level ?? "info") < levels.indexOf(level)) return undefined;
  if (request && parsed?.invocation !== request && !line.includes(request)) return undefined;
  if (json)
    return printableJson({
      ...(instance && { instance }),
      ...(run !== undefined && { run }),
      ...parsed,
    });
  const known = withoutDirectory(line);
  const text = isTerminal ? printableOutput(known) : known;
  return instance ? `[${instance}${run === undefined ? "" : ` run ${run}`}] ${text}` : text;
}

function parse(line: string): LogLine {
  if (line.startsWith("{")) {
    try {
      const { time, level, message, invocation, ...rest } = JSON.parse(line) as LogLine;
      const isKnown = levels.some((each) => each === level);
      if (typeof message === "string")
        return {
          ...(typeof time === "string" && { time }),
          ...(isKnown && { level }),
          message,
          ...(typeof invocation === "string" && { invocation }),
          ...rest,
        };
    } catch {
      // A line like others.
    }
  }
  const [, time, level, invocation, message] =
    /^(\d{4}-\S+Z) (DEBUG|INFO|WARN|ERROR) +(?:\[([^\]]+)\] )?([^]*)$/.exec(line) ?? [];
  if (message === undefined) return { message: line };
  return {
    ...(time !== undefined && { time }),
    level: levelNamed(level ?? "info"),
    message,
    ...(invocation !== undefined && { invocation }),
  };
}
