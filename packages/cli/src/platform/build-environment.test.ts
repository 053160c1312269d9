import { expect, test } from "vitest";
import { buildEnvironmentOf } from "./build-environment.ts";

test("builds get this machine's proxies and certificates, no password and nothing else", () => {
  const env = {
    HTTPS_PROXY: "http://proxy.example:3128",
    http_proxy: "http://ann:secret@proxy.example:3128",
    no_proxy: "localhost,127.0.0.1",
    NO_PROXY: "",
    GIT_SSL_CAINFO: "/etc/ssl/ours.pem",
    HOME: "/home/ann",
    GIT_SSL_NO_VERIFY: "1",
  };
  expect(buildEnvironmentOf(env)).toEqual({
    HTTPS_PROXY: "http://proxy.example:3128",
    no_proxy: "localhost,127.0.0.1",
    GIT_SSL_CAINFO: "/etc/ssl/ours.pem",
  });
});
