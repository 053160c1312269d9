import { Readable } from "node:stream";
import { type HttpHeaders, type HttpRequest, HttpResponse } from "../http/message.ts";
import { responseTo } from "../proxy/responses.ts";
import { type UserInfo } from "../request.ts";
import { isRedirection, redirectionRefused } from "./aggregator.ts";
import { type Backend, unavailable } from "./backend.ts";
import { identityHeaders } from "./identity-headers.ts";

const passedOn = ["accept", "content-type", "if-none-match", "user-agent"];
const passedBack = ["content-type", "etag"];
/** Their responses have no body. */
const bodiless = new Set([204, 304]);

/** Another server's response to a request of this process, which came over no socket. Throws a `StatusError`. */
export async function answerOf(
  backend: Backend,
  request: HttpRequest,
  path: string,
  user: UserInfo,
): Promise<HttpResponse> {
  const { method, signal } = request;
  const body = Buffer.from((await request.arrayBuffer()) as ArrayBuffer);
  const headers: HttpHeaders = identityHeaders(user);
  for (const name of passedOn) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  if (body.length > 0) headers["content-length"] = String(body.length);
  const isRepeatable = body.length === 0;
  const sent = backend.request({ method, path, headers, signal, isRepeatable });
  const arrived = responseTo(sent, (why) => unavailable(backend.name, why));
  sent.end(body);
  const response = await arrived;
  const { statusCode: status = 502 } = response;
  if (isRedirection(response)) {
    response.destroy();
    throw redirectionRefused(backend.name);
  }
  const back: HttpHeaders = {};
  for (const name of passedBack) {
    const value = response.headers[name];
    if (typeof value === "string") back[name] = value;
  }
  if (bodiless.has(status)) {
    response.resume();
    return new HttpResponse(null, { status, headers: back });
  }
  back["content-type"] ??= "application/json";
  return new HttpResponse(Readable.toWeb(response) as ReadableStream<Uint8Array>, {
    status,
    headers: back,
  });
}
