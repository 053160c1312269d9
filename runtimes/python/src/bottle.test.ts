import { expect, test } from "vitest";
import { installPackages, missingPython, PythonRuntime } from "./testing.ts";

const packages = installPackages("bottle==0.13.4");

/**
 * Two differences are on purpose. Bottle gives what is not ASCII as text only to attributes (`query.u`) and else as Latin-1, and takes
 * bodies of any type for forms: ours is text always, and has forms of what says that it is one, or says nothing.
 */
/** The same expressions on our request, and on Bottle's over the same environment. */
const code = `
import sys
sys.path.insert(0, "${packages}")
import bottle

def main(event, context):
    ours = event["extensions"]["request"]
    theirs = bottle.Request(dict(ours.environ))
    expressions = ours.get_header("x-expressions").split("|")
    return {"rows": [[each, *(shown(each, request) for request in (ours, theirs))] for each in expressions]}

def shown(expression, request):
    try:
        return repr(eval(expression, {"r": request}))
    except Exception as error:
        return type(error).__name__
`;

const always = [
  "r.method", "r.path", "r.fullpath", "r.query_string", "r.url", "r.urlparts", "r.script_name", "sorted(r.query.keys())", "r.query.getall('a')",
  "r.query.get('n', type=int)", "r.query.get('none', 7)", "r.query.n", "r.query.none", "r.query.getunicode('u')",
  "r.query.decode().u", "r.GET['a']", "r.params.getall('a')", "r.forms.get('a')", "r.forms.getall('a')", "r.forms.b", "r.POST.a",
  "r.get_header('X-A')", "r.get_header('none', 1)", "r.headers['x-a']", "r.headers.get('X-A')", "'X-A' in r.headers", "r.headers.get('none')",
  "sorted(set(r.headers.keys()) - {'Content-Type', 'Content-Length'})", "r.content_type", "r.content_length", "r.body.read()", "r.body.read(3)", "r.json", "r.is_xhr", "r.is_ajax", "r.auth",
  "r.cookies.c", "r.get_cookie('c')", "r.get_cookie('none', 5)", "r.remote_route", "r.remote_addr", "r.chunked", "r.copy().path",
  "r.get('REQUEST_METHOD')", "r['REQUEST_METHOD']", "'wsgi.input' in r.keys()", "r.files.keys()",
  "r.query.get(key='a')", "r.query.get('a', None, 0)", "r.query.get('a', index=5, default=8)", "r.query.get(key='n', default=1, index=-1, type=int)",
  "r.query.get('u', 3, type=int)", "r.query.getone('a', index=0)", "r.query.getall(key='a')", "r.query.getlist('a')", "r.query.dict['a']",
  "[p for p in r.query.allitems() if p[0] != 'u']", "[p for p in r.query.iterallitems() if p[0] != 'u']", "'2' in r.query.values()", "('a', '2') in r.query.items()", "len(r.query)", "'a' in r.query",
  "r.get_header(name='X-A', default=1)", "r.headers.get(key='X-A')", "r.get_cookie(key='c', default=2)", "r.query.getunicode(name='none', default=4)",
  "dict(r.query)['a']", "r.params.get('a', index=0)",
]; // prettier-ignore

const requests: {
  name: string;
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}[] = [
  { name: "GET", headers: { cookie: "c=1; d=2", "x-forwarded-for": "10.0.0.1, 10.0.0.2" } },
  {
    name: "a form",
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "a=9&b=%C3%BC&b=2",
  },
  { name: "a form that says no type", method: "POST", body: "a=9&b=2" },
  {
    name: "JSON",
    method: "PUT",
    headers: { "content-type": "application/json; charset=utf-8" },
    body: '{"a":[1]}',
  },
  { name: "bad JSON", method: "POST", headers: { "content-type": "application/json" }, body: "{" },
  {
    name: "text from a proxy",
    method: "POST",
    headers: {
      "content-type": "text/plain",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "example.com",
      authorization: "Basic YTpi",
      "x-requested-with": "XMLHttpRequest",
    },
    body: "hello",
  },
];

test.skipIf(missingPython ?? (packages ? undefined : "bottle cannot be installed")).each(requests)(
  "members of the request are as Bottle's: $name",
  async ({ method = "GET", headers = {}, body }) => {
    await using runtime = await PythonRuntime.start(code);
    const { rows } = (await runtime.json("/a%20b/c?a=1&a=2&n=3&u=%C3%BC", {
      method,
      headers: { ...headers, host: "fn.example:81", "x-a": "v", "x-expressions": always.join("|") },
      ...(body !== undefined && { body }),
    })) as { rows: [string, string, string][] };
    expect(rows.map(([expression, ours]) => [expression, ours])).toEqual(
      rows.map(([expression, , theirs]) => [expression, theirs]),
    );
  },
);
