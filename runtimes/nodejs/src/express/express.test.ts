import { expect, test } from "vitest";
import { send, startFunction } from "../testing/running-function.ts";

/** [expression of the request `r`, headers, what it is] */
const asked: [string, Record<string, string>, unknown][] = [
  [
    `r.accepts()`,
    { accept: "text/html;q=0.5, application/json" },
    ["application/json", "text/html"],
  ],
  [`r.accepts("png", "json")`, { accept: "image/*;q=0.2, application/json;q=0.1" }, "png"],
  [`r.accepts("html")`, { accept: "text/html;q=0, */*" }, false],
  [`r.accepts("html", "json")`, {}, "html"],
  [`r.acceptsLanguages("de", "en")`, { "accept-language": "en-GB, de;q=0.5" }, "en"],
  [`r.acceptsLanguages("en-US", "fr")`, { "accept-language": "en, fr;q=0.5" }, "en-US"],
  [`r.acceptsLanguages()`, { "accept-language": "da, en;q=0.8" }, ["da", "en"]],
  [`r.acceptsEncodings("br", "gzip")`, { "accept-encoding": "gzip, br;q=0.5" }, "gzip"],
  [`r.acceptsEncodings("br", "identity")`, { "accept-encoding": "gzip" }, "identity"],
  [`r.acceptsEncodings("identity")`, { "accept-encoding": "identity;q=0" }, false],
  [`r.acceptsCharsets("utf-8")`, { "accept-charset": "ISO-8859-1" }, false],
  [`r.range(100)`, {}, null],
  [
    `r.range(100)`,
    { range: "bytes=0-9,-5,200-" },
    [
      { start: 0, end: 9 },
      { start: 95, end: 99 },
    ],
  ],
  [`r.range(100).type`, { range: "bytes=0-9" }, "bytes"],
  [`r.range(100)`, { range: "bytes=200-300" }, -1],
  [`r.range(100)`, { range: "nonsense" }, -2],
  [`r.range(100)`, { range: "bytes=a-b" }, -2],
  [`[r.fresh, r.stale]`, {}, [false, true]],
  [`(r.res.set("etag", '"1"'), r.fresh)`, { "if-none-match": 'W/"1", "2"' }, true],
  [`(r.res.set("etag", '"3"'), r.fresh)`, { "if-none-match": '"1"' }, false],
  [`r.res.req === r`, {}, true],
];

test("the request has what Express' has", async () => {
  const cases = asked.map(([code]) => `(r) => ${code}`).join(",\n");
  const { url } = await startFunction(
    `const cases = [${cases}];
    exports.main = ({ extensions: { request } }) => [cases[request.query.n](request)];`,
  );
  for (const [n, [code, headers, expected]] of asked.entries()) {
    const { body } = await send(`${url}/?n=${n}`, { headers });
    expect({ code, value: JSON.parse(body) }).toEqual({ code, value: [expected] });
  }
});

interface Answer {
  code: string;
  target?: string;
  method?: string;
  sent?: Record<string, string>;
  status?: number;
  body: string;
  headers?: Record<string, unknown>;
}

const formats = `{ text: () => r.send("hey"), "text/html": () => r.send("<p>hey"), json: () => r.json({ a: 1 }) }`;

const answers: Answer[] = [
  {
    code: `r.vary("Accept").vary(["accept", "Cookie"]).end()`,
    body: "",
    headers: { vary: "Accept, Cookie" },
  },
  { code: `r.vary("Accept").vary("*").end()`, body: "", headers: { vary: "*" } },
  {
    code: `r.append("x-a", "1").append("x-a", ["2", "3"]).end()`,
    body: "",
    headers: { "x-a": "1, 2, 3" },
  },
  {
    code: `r.links({ next: "/2", last: ["/8", "/9"] }).links({ prev: "/0" }).end()`,
    body: "",
    headers: { link: `</2>; rel="next", </8>; rel="last", </9>; rel="last", </0>; rel="prev"` },
  },
  {
    code: `r.jsonp({ a: "\\u2028" })`,
    target: "&callback=a.b[0];alert(1)",
    body: `/**/ typeof a.b[0]alert1 === 'function' && a.b[0]alert1({"a":"\\u2028"});`,
    headers: {
      "content-type": "text/javascript; charset=utf-8",
      "x-content-type-options": "nosniff",
    },
  },
  { code: `r.jsonp({ a: 1 })`, body: '{"a":1}', headers: { "content-type": /json/ } },
  {
    code: `r.format(${formats})`,
    sent: { accept: "application/json" },
    body: '{"a":1}',
    headers: { "content-type": "application/json; charset=utf-8", vary: "Accept" },
  },
  { code: `r.format(${formats})`, body: "hey", headers: { "content-type": /^text\/plain/ } },
  {
    code: `r.format(${formats})`,
    sent: { accept: "image/png" },
    status: 406,
    body: "Not Acceptable",
  },
  { code: `r.format({ json: 1, default: () => r.end("x") })`, sent: { accept: "a/b" }, body: "x" },
  { code: `r.cookie("a", "b", { signed: true })`, status: 500, body: "Internal server error" },
  {
    code: `r.cookie("a", { b: 1 }, { priority: "high" }).end()`,
    body: "",
    headers: { "set-cookie": ["a=j%3A%7B%22b%22%3A1%7D; Path=/; Priority=High"] },
  },
  { code: `r.location("/ä b").end()`, body: "", headers: { location: "/%C3%A4%20b" } },
  {
    code: `r.sendFile(__dirname + "/a.txt")`,
    body: "0123456789",
    headers: {
      "content-type": "text/plain; charset=utf-8",
      "content-length": "10",
      "cache-control": "public, max-age=0",
      "accept-ranges": "bytes",
      etag: /^W\/"a-/,
      "last-modified": / GMT$/,
    },
  },
  {
    code: `r.sendFile("a.txt", { root: __dirname, maxAge: 5000, headers: { "x-a": "1" } })`,
    method: "HEAD",
    body: "",
    headers: { "content-length": "10", "cache-control": "public, max-age=5", "x-a": "1" },
  },
  {
    code: `r.sendFile(__dirname + "/a.txt")`,
    sent: { range: "bytes=2-4" },
    status: 206,
    body: "234",
    headers: { "content-range": "bytes 2-4/10", "content-length": "3" },
  },
  {
    code: `r.sendFile(__dirname + "/a.txt")`,
    sent: { range: "bytes=20-" },
    status: 416,
    body: "Range Not Satisfiable",
    headers: { "content-range": "bytes */10" },
  },
  {
    code: `r.sendFile(__dirname + "/a.txt")`,
    sent: { "if-none-match": "*" },
    status: 304,
    body: "",
  },
  { code: `r.sendFile("a.txt")`, status: 500, body: "Internal server error" },
  { code: `r.sendFile("../server.cjs", { root: __dirname })`, status: 403, body: "Forbidden" },
  { code: `r.sendFile("none", { root: __dirname })`, status: 404, body: "Not Found" },
  { code: `r.sendFile(".secret", { root: __dirname })`, status: 404, body: "Not Found" },
  { code: `r.sendFile("/", { root: __dirname })`, status: 404, body: "Not Found" },
  {
    code: `r.sendFile("none", { root: __dirname }, (error) => r.status(410).end(error.message))`,
    status: 410,
    body: "Not Found",
  },
  {
    code: `r.download(__dirname + "/a.txt", "b.csv")`,
    body: "0123456789",
    headers: {
      "content-disposition": 'attachment; filename="b.csv"',
      "content-type": "text/csv; charset=utf-8",
    },
  },
];

test.each([
  ["main(event, context)", "nodejs24", `({ extensions: { request: q, response: r } }) =>`],
  ["main(request, response)", "nodejs26", `(q, r) =>`],
])("the response of %s has what Express' has", async (_name, runtime, parameters) => {
  const cases = answers.map(({ code }) => `(r) => { ${code}; }`).join(",\n");
  const { url } = await startFunction(
    {
      "handler.js": `const cases = [${cases}];\nexports.main = ${parameters} cases[q.query.n](r);`,
      "a.txt": "0123456789",
      ".secret": "x",
    },
    { FUNC_RUNTIME: runtime },
  );
  for (const [n, each] of answers.entries()) {
    const { code, target = "", method = "GET", sent = {}, status = 200, body, headers = {} } = each;
    const answer = await send(`${url}/?n=${n}${target}`, { method, headers: sent });
    expect({ code, status: answer.status, body: answer.body }).toEqual({ code, status, body });
    for (const [name, value] of Object.entries(headers))
      expect(answer.headers[name], code).toEqual(
        value instanceof RegExp ? expect.stringMatching(value) : value,
      );
  }
});
