import { type FunctionRequest } from "./function-request.ts";
import { type FunctionResponse } from "./function-response.ts";
import { logInfo } from "./log.ts";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** Writes a line in Apache's "combined" format to stdout when the answer is out. */
export function accessLogger(request: FunctionRequest, response: FunctionResponse): void {
  const { method, url, httpVersion, headers } = request;
  const address = request.ip ?? "-";
  const time = timestamp(new Date());
  response.once("close", () => {
    const length = String(response.getHeader("content-length") ?? "-");
    const referrer = quoted(headers.referer);
    logInfo(
      `${address} - - [${time}] ${quoted(`${method} ${url} HTTP/${httpVersion}`)} ` +
        `${response.statusCode} ${length} ${referrer} ${quoted(headers["user-agent"])}`,
    );
  });
}

function quoted(text: string | undefined): string {
  return text === undefined ? '"-"' : `"${text.replaceAll('"', '\\"')}"`;
}

function timestamp(date: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${two(date.getUTCDate())}/${months[date.getUTCMonth()]}/${date.getUTCFullYear()}`;
  return `${day}:${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())} +0000`;
}
