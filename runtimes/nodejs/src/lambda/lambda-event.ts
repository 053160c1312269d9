/** The event of AWS Lambda behind an HTTP API, format 2.0, with what only REST APIs have (format 1.0). */
import { inAnyCase } from "../dialects/any-case.ts";
import { type FunctionRequest } from "../function-request.ts";
import { essenceOf } from "../media-type.ts";
import { readText } from "../request-body.ts";
import { type Settings } from "../settings.ts";

/** As data, which another thread can be sent. */
export type LambdaEvent = ReturnType<typeof eventOf>;

export function eventOf(request: FunctionRequest, settings: Settings, requestId: string) {
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
    headers: Object.fromEntries(Object.entries(others).map(([name, each]) => [name, String(each)])),
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

/** Format 2.0 leaves them out where a request has none, format 1.0 has null: as JSON the event is the former, handlers of both find theirs. */
const absent = { body: null, queryStringParameters: null };

/** What a handler gets of it. */
export function asHandlersSeeIt(event: LambdaEvent): object {
  const own = { ...event, headers: inAnyCase(event.headers) };
  return Object.assign(Object.create(absent) as object, own);
}

/** `12/Mar/2020:19:03:58 +0000`, as access logs have it. */
function timeOf(date: Date): string {
  const [, day, month, year, time] = /^\w+, (\d+) (\w+) (\d+) (\S+)/.exec(date.toUTCString()) ?? [];
  return `${day}/${month}/${year}:${time} +0000`;
}

/** The one route there is. */
const resource = "/{proxy+}";

function format1Of({ path, method, headersDistinct }: FunctionRequest, query: URLSearchParams) {
  const names = [...new Set(query.keys())];
  const values = names.map((name) => [name, query.getAll(name)]);
  return {
    resource,
    path,
    httpMethod: method,
    multiValueHeaders: { ...headersDistinct },
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

/** As of an HTTP API: forms are bytes. */
function bodyOf(request: FunctionRequest) {
  const { rawBody, headers } = request;
  if (!rawBody) return { body: undefined, isBase64Encoded: false };
  const essence = essenceOf(headers["content-type"]);
  const isText = /^text\/|json$|xml$|javascript$/.test(essence);
  const body = isText ? readText(rawBody, request) : rawBody.toString("base64");
  return { body, isBase64Encoded: !isText };
}
