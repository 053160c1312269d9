import { type IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { requestHeaders } from "./forwarded-headers.ts";

const request = {
  rawHeaders: [],
  headers: {},
  socket: { remoteAddress: "10.0.0.9" },
} as unknown as IncomingMessage;

test.each([
  ["dice.default.localhost:8080", 'for=10.0.0.9;host="dice.default.localhost:8080";proto=http'],
  ["[::1]:8080", 'for=10.0.0.9;host="[::1]:8080";proto=http'],
  ['a";for=1.2.3.4;x="', "for=10.0.0.9;proto=http"],
  ["a\\", "for=10.0.0.9;proto=http"],
  ["", "for=10.0.0.9;proto=http"],
])("Host %j", (host, forwarded) => {
  const headers = requestHeaders(request, { host, trust: false });
  expect(headers[headers.indexOf("forwarded") + 1]).toBe(forwarded);
});
