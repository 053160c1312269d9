/** Requests to Functions through a gateway. */
import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: string;
}

export interface CallOptions {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Buffer;
}

/** To the gateway on this port (of loopback, or `address`), for the Function that the host names. */
export function call(
  port: number | string,
  host: string,
  options: CallOptions & { address?: string } = {},
): Promise<Answer> {
  const { address = "127.0.0.1", path = "/", headers, body } = options;
  const method = options.method ?? (body === undefined ? "GET" : "POST");
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { host: address, port, path, method, headers: { host, ...headers } },
      (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => (text += chunk));
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
        );
        response.on("error", reject);
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** Calls until the answer fits. */
export async function callUntil(
  ask: () => Promise<Answer>,
  fits: (answer: Answer) => boolean,
  timeoutMs = 110_000,
): Promise<Answer> {
  const deadline = performance.now() + timeoutMs;
  let answer: Answer | undefined;
  while (performance.now() < deadline) {
    answer = await ask();
    if (fits(answer)) return answer;
    await pause(40);
  }
  throw new Error(
    `the Function did not answer as expected, but ${answer?.status}: ${answer?.body}`,
  );
}
