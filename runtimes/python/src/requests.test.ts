/** The stand-in for `requests` does what the package does: the same calls, of both, against the same server. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { freePort } from "@spry/test-kit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = missingPython ? undefined : installPackages("requests");

let server: Server;
let url = "";
let nowhere = "";
const runtimes: PythonRuntime[] = [];

/** `e` is evaluated with `requests`, `url` and `nowhere`; an error is its ancestry. */
const code = `
import io, json, sys
import requests
from requests.exceptions import Timeout

def main(event, context):
    data = event["data"]
    names = {"requests": requests, "url": data["url"], "nowhere": data["nowhere"], "io": io, "json": json}
    if data["expression"] == "which":
        return {"value": "stand-in" if "spry" in repr(requests.Session) else "package"}
    try:
        return {"value": eval(data["expression"], names)}
    except requests.RequestException as error:
        kinds = [each.__name__ for each in type(error).__mro__ if each.__module__.endswith(("exceptions", "errors"))]
        return {"error": kinds[0], "timeout": isinstance(error, Timeout), "ancestors": "RequestException" in kinds,
                "status": getattr(error.response, "status_code", None)}
`;

beforeAll(async () => {
  if (!packages) return;
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { pathname } = new URL(request.url ?? "", "http://x");
      if (pathname === "/slow") return;
      if (pathname === "/moved") return response.writeHead(302, { location: "/there" }).end();
      if (pathname === "/away")
        return response
          .writeHead(302, { location: `${url.replace("127.0.0.1", "localhost")}/` })
          .end();
      if (pathname === "/loop") return response.writeHead(302, { location: "/loop" }).end();
      if (pathname === "/refused") return response.writeHead(403).end("no");
      if (pathname === "/text")
        return response.writeHead(200, { "content-type": "text/plain; charset=utf-8" }).end("ä\nb");
      if (pathname === "/latin")
        return response.writeHead(200, { "content-type": "text/plain" }).end(Buffer.from([0xe4]));
      if (pathname === "/cookie") response.setHeader("set-cookie", ["a=1; Path=/", "b=2; Path=/"]);
      if (pathname === "/empty") return response.writeHead(204).end();
      const { method, headers, url: target } = request;
      const body = Buffer.concat(chunks)
        .toString()
        .replaceAll(/[0-9a-f]{32}/g, "BOUNDARY");
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ method, target, headers, body }));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  nowhere = `http://127.0.0.1:${await freePort()}`;
  const hidden = `import sys\nsys.path[:] = [each for each in sys.path if "site-packages" not in each]\n`;
  runtimes.push(
    await PythonRuntime.start(hidden + code),
    await PythonRuntime.start(code, { PYTHONPATH: packages }),
  );
}, 60_000);

afterAll(async () => {
  for (const runtime of runtimes) await runtime.stop();
  server?.closeAllConnections();
  server?.close();
});

const both = (expression: string) =>
  Promise.all(
    runtimes.map((runtime) =>
      runtime.json("/", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ expression, url, nowhere }),
      }),
    ),
  );

const seen = (
  call: string,
) => `(lambda r: [r.json()["method"], r.json()["target"], r.json()["body"],
  r.json()["headers"].get("content-type", "").split("boundary")[0], r.json()["headers"].get("x-a"), r.json()["headers"].get("cookie"),
  r.json()["headers"].get("authorization")])(${call})`;

describe.skipIf(!packages)("the stand-in for requests, beside the package", () => {
  test("is what it is called", async () => {
    expect(await both("which")).toEqual([{ value: "stand-in" }, { value: "package" }]);
  });

  test.each([
    `requests.get(url)`,
    `requests.get(url + "/a?x=1#f", params={"b": "ü &", "c": [1, 2], "d": None})`,
    `requests.get(url, headers={"X-A": "1"}, cookies={"c": "3"}, auth=("me", "word"))`,
    `requests.post(url, json={"a": [1, None, "ü"]})`,
    `requests.post(url, data={"a": "1 2", "b": ["x", "y"]})`,
    `requests.post(url, data="text")`,
    `requests.post(url, data=b"bytes", headers={"Content-Type": "image/png"})`,
    `requests.put(url, data=[("a", 1), ("a", 2)])`,
    `requests.patch(url, json=[])`,
    `requests.delete(url)`,
    `requests.options(url)`,
    `requests.request("post", url)`,
    `requests.post(url, files={"f": ("a.txt", b"content", "text/plain")}, data={"n": "1"})`,
    `requests.post(url, files={"f": io.BytesIO(b"content")})`,
  ])("sends the same: %s", async (call) => {
    const [ours, theirs] = await both(seen(call));
    expect(ours).toEqual(theirs);
  });

  test.each([
    `(lambda r: [r.status_code, r.ok, bool(r), r.reason, r.text, r.headers["CONTENT-TYPE"], "content-type" in r.headers, r.encoding])(requests.get(url + "/text"))`,
    `(lambda r: [r.text, r.encoding])(requests.get(url + "/latin"))`,
    `(lambda r: [r.status_code, r.content.decode(), r.ok])(requests.get(url + "/empty"))`,
    `(lambda r: [r.status_code, r.ok, r.text, repr(r)])(requests.get(url + "/refused"))`,
    `requests.get(url + "/refused").raise_for_status()`,
    `requests.get(url + "/text").raise_for_status()`,
    `requests.get(url + "/text").json()`,
    `(lambda r: [r.status_code, r.json()["target"], r.url.endswith("/there")])(requests.post(url + "/moved", data="x"))`,
    `(lambda r: [r.status_code, r.headers["location"], r.is_redirect])(requests.get(url + "/moved", allow_redirects=False))`,
    `(lambda r: [r.status_code, r.text])(requests.head(url + "/moved"))`,
    `requests.get(url + "/loop")`,
    `(lambda h: [h.get("authorization"), h.get("cookie"), h.get("x-a")])(requests.get(url + "/away", auth=("a", "b"), headers={"X-A": "1"}).json()["headers"])`,
    `(lambda s: [s.get(url + "/cookie").ok, s.get(url.replace("127.0.0.1", "localhost")).json()["headers"].get("cookie")])(requests.Session())`,
    `requests.get(url + "/slow", timeout=0.2)`,
    `requests.get(url + "/slow", timeout=(3, 0.2))`,
    `requests.get(nowhere)`,
    `requests.get("example.com")`,
    `requests.get("ftp://example.com")`,
    `requests.get("http://")`,
    `(lambda s: [s.get(url + "/cookie").cookies["a"], s.get(url).json()["headers"]["cookie"]])(requests.Session())`,
    `(lambda s: [s.headers.update({"x-a": "5"}), s.post(url).json()["headers"]["x-a"]])(requests.Session())`,
    `list(requests.get(url + "/text", stream=True).iter_lines(decode_unicode=True))`,
    `b"".join(requests.get(url + "/text", stream=True).iter_content(2)).decode()`,
    `[requests.codes.ok, requests.codes.not_found]`,
    `(lambda r: [r.request.method, r.request.url == url + "/?a=1", r.elapsed.total_seconds() > 0])(requests.get(url + "/", params={"a": 1}))`,
  ])("%s", async (expression) => {
    const [ours, theirs] = await both(expression);
    expect(ours).toEqual(theirs);
  });
});
