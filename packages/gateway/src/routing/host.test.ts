import { expect, test } from "vitest";
import { parseHost } from "./host.ts";

test.each([
  ["hello.default.localhost", "default/hello"],
  ["hello.default.localhost:8080", "default/hello"],
  ["Hello.Default.LocalHost", "default/hello"],
  ["hello.default.localhost.", "default/hello"],
  ["hello.default.svc.cluster.local", "default/hello"],
  ["hello.default.svc.cluster.local:80", "default/hello"],
  ["hello.default.svc", "default/hello"],
  ["a-1.b-2.localhost", "b-2/a-1"],
  ["", undefined],
  ["localhost", undefined],
  ["default.localhost", undefined],
  ["x.hello.default.localhost", undefined],
  [".default.localhost", undefined],
  ["hello..localhost", undefined],
  ["-a.default.localhost", undefined],
  ["hello.default.example.com", undefined],
  ["127.0.0.1:8080", undefined],
  ["[::1]:8080", undefined],
  ['hello.default.localhost:80"', undefined],
  [`${"a".repeat(64)}.default.localhost`, undefined],
  [`${"a".repeat(300)}.localhost`, undefined],
])("host %j means %s", (host, key) => expect(parseHost(host)?.key).toBe(key));
