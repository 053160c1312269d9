import { Readable } from "node:stream";
import { type HttpHeaders, type HttpRequest, HttpResponse } from "../http/message.ts";
import { responseTo } from "../proxy/responses.ts";
import { type UserInfo } from "../request.ts";
import { redirectionRefused } from "./aggregator.ts";
import { type Backend, unavailable } from "./backend.ts";
import { identityHeaders } from "./identity-headers.ts";

const passedOn = ["accept", "content-type", "user-agent"];

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
  if (status >= 300 && status < 400) {
    response.destroy();
    throw redirectionRefused(backend.name);
  }
  const type = response.headers["content-type"] ?? "application/json";
  return new HttpResponse(Readable.toWeb(response) as ReadableStream<Uint8Array>, {
    status,
    headers: { "content-type": type },
  });
}
