import { type LogFormat } from "@spry/controller";

const levels: Readonly<Record<number, string>> = {
  20: "DEBUG",
  30: "INFO",
  40: "WARN",
  50: "ERROR",
};

/** The logger's line of JSON, or the same in a readable form: time, level, name, message, fields; tabs between. */
export function formatted(line: string, format: LogFormat): string {
  if (format === "json") return line;
  const { time, level, name, msg, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const rest = Object.keys(fields).length > 0 ? [JSON.stringify(fields)] : [];
  const parts = [time, levels[Number(level)] ?? "FATAL", name, oneLine(msg), ...rest];
  return `${parts.join("\t")}\n`;
}

/** Text that others have put into a message must not look like a line of its own. */
const oneLine = (text: unknown): string =>
  JSON.stringify(String(text ?? ""))
    .slice(1, -1)
    .replaceAll('\\"', '"');
