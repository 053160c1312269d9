import { randomUUID } from "node:crypto";
import { inAnyCase } from "./any-case.ts";
import { type FunctionRequest } from "../function-request.ts";
import { type FunctionResponse } from "../function-response.ts";
import { type FunctionHandler, isThenable, type UserFunction } from "../handler.ts";
import { stream } from "./lambda-streaming.ts";
import { essenceOf } from "../media-type.ts";
import { readText } from "../request-body.ts";
import { type Settings } from "../settings.ts";

/**
 * `handler(event, context, callback)` of AWS Lambda, with an event of API Gateway, format 2.0. What only format
 * 1.0 has is there too, for handlers that were written for a REST API.
 */
export function lambdaHandler(
  handler: UserFunction,
  settings: Settings,
  isStream = false,
): FunctionHandler {
  return {
    body: "raw",
    async call(request, response) {
      const id = randomUUID();
      if (isStream) {
        const context = contextOf(settings, id, () => {});
        return stream(handler, eventOf(request, settings, id), context, response);
      }
      const result = await new Promise((resolve, reject) => {
        const callback = (error: unknown, value: unknown) =>
          error === null || error === undefined ? resolve(value) : reject(error);
        const returned = handler(
          eventOf(request, settings, id),
          contextOf(settings, id, callback),
          callback,
        );
        if (isThenable(returned)) returned.then(resolve, reject);
        else if (isData(returned)) resolve(returned);
      });
      return applyResult(response, result);
    },
  };
}

/**
 * Of what a handler returns without a promise, only text and plain data are an answer: AWS ignores that, too, but some
 * handlers rely on it. All else, such as a timer, a server or the `{ promise }` of aws-serverless-express, comes by accident, and the
 * callback or `context` follows. How many parameters it has says nothing: wrappers have others.
 */
function isData(value: unknown): boolean {
  if (typeof value === "string" || Array.isArray(value)) return true;
  if (value === null || typeof value !== "object") return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null;
  return isPlain && !Object.values(value).some((each) => isThenable(each) || isCallable(each));
}

const isCallable = (value: unknown) => typeof value === "function";

function eventOf(request: FunctionRequest, settings: Settings, requestId: string) {
  const now = new Date();
  const { path, originalUrl: url, method, headers } = request;
  const { cookie, ...others } = headers;
  const { body, isBase64Encoded } = bodyOf(request);
  const host = request.headers.host ?? "";
  const query = new URLSearchParams(url.slice(path.length + 1));
  return {
    version: "2.0",
    ...format1Of(request, query),
    routeKey: "$default",
    rawPath: path,
    rawQueryString: url.slice(path.length + 1),
    ...(cookie !== undefined && { cookies: cookie.split(/; ?/) }),
    headers: inAnyCase(
      Object.fromEntries(Object.entries(others).map(([name, each]) => [name, String(each)])),
    ),
    ...(query.size > 0 && { queryStringParameters: joined(query) }),
    requestContext: {
      accountId: "anonymous",
      apiId: settings.functionName,
      domainName: host,
      domainPrefix: host.split(".", 1)[0],
      http: {
        method,
        path,
        protocol: `HTTP/${request.httpVersion}`,
        sourceIp: request.ip,
        userAgent: headers["user-agent"] ?? "",
      },
      httpMethod: method,
      path,
      resourcePath: resource,
      protocol: `HTTP/${request.httpVersion}`,
      identity: { sourceIp: request.ip, userAgent: headers["user-agent"] ?? "" },
      requestId,
      requestTime: timeOf(now),
      requestTimeEpoch: now.getTime(),
      routeKey: "$default",
      stage: "$default",
      time: timeOf(now),
      timeEpoch: now.getTime(),
    },
    ...(body !== undefined && { body }),
    isBase64Encoded,
  };
}

/** `12/Mar/2020:19:03:58 +0000`, as access logs have it. */
function timeOf(date: Date): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) (\S+)/.exec(date.toUTCString()) ?? [];
  return `${day}/${month}/${year}:${time} +0000`;
}

/** The one route there is. */
const resource = "/{proxy+}";

function format1Of({ path, method, headers }: FunctionRequest, query: URLSearchParams) {
  const names = [...new Set(query.keys())];
  const values = names.map((name) => [name, query.getAll(name)]);
  return {
    resource,
    path,
    httpMethod: method,
    multiValueHeaders: Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, [value].flat()]),
    ),
    multiValueQueryStringParameters: names.length > 0 ? Object.fromEntries(values) : null,
    pathParameters: path === "/" ? null : { proxy: path.slice(1) },
    stageVariables: null,
  };
}

/** Repeated names are one, their values joined by commas. */
function joined(query: URLSearchParams): Record<string, string> {
  const names = [...new Set(query.keys())];
  return Object.fromEntries(names.map((name) => [name, query.getAll(name).join(",")]));
}

function bodyOf(request: FunctionRequest) {
  const { rawBody, headers } = request;
  if (!rawBody) return { body: undefined, isBase64Encoded: false };
  const essence = essenceOf(headers["content-type"]);
  const isText = /^text\/|json$|xml$|javascript$|^application\/x-www-form-urlencoded$/.test(
    essence,
  );
  const body = isText ? readText(rawBody, request) : rawBody.toString("base64");
  return { body, isBase64Encoded: !isText };
}

type Callback = (error: unknown, value?: unknown) => void;

function contextOf(settings: Settings, awsRequestId: string, callback: Callback) {
  const end = Date.now() + settings.timeoutSeconds * 1000;
  return {
    functionName: settings.functionName,
    functionVersion: "$LATEST",
    invokedFunctionArn: `arn:aws:lambda:local:000000000000:function:${settings.functionName}`,
    memoryLimitInMB: String(Math.round(process.constrainedMemory() / 1024 / 1024) || ""),
    awsRequestId,
    logGroupName: `/aws/lambda/${settings.functionName}`,
    logStreamName: process.env["HOSTNAME"] ?? "",
    callbackWaitsForEmptyEventLoop: false,
    getRemainingTimeInMillis: () => Math.max(0, end - Date.now()),
    done: callback,
    fail: (error: unknown) => callback(error ?? new Error("context.fail")),
    succeed: (value: unknown) => callback(null, value),
  };
}

interface LambdaResult {
  statusCode?: number;
  headers?: Record<string, string | number | boolean>;
  /** Of format 1.0, which many handlers still answer in. */
  multiValueHeaders?: Record<string, string[]>;
  cookies?: string[];
  body?: unknown;
  isBase64Encoded?: boolean;
}

/** Without a status code it is the body, as JSON; that is also what a body is that no header says more about. */
function applyResult(response: FunctionResponse, result: unknown): unknown {
  if (result === null || typeof result !== "object" || !("statusCode" in result)) {
    response.type("json");
    return typeof result === "string" ? result : JSON.stringify(result);
  }
  const { statusCode, headers, multiValueHeaders, cookies, body, isBase64Encoded } =
    result as LambdaResult;
  response.status(Number(statusCode));
  if (headers) response.set(headers);
  for (const [name, values] of Object.entries(multiValueHeaders ?? {}))
    response.append(name, values.map(String));
  if (cookies) response.append("set-cookie", cookies);
  if (!response.hasHeader("content-type")) response.setHeader("content-type", "application/json");
  return isBase64Encoded ? Buffer.from(String(body), "base64") : body;
}
