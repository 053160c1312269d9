/** Applications of AWS Chalice, by the real package. */
import { describe, test } from "vitest";
import { expectAnswer, type Row } from "./handler-rows.ts";
import { installPackages, missingPython } from "./testing.ts";

const installed = installPackages("chalice==1.32.0");
const files = {
  "app.py": `
from chalice import Chalice
app = Chalice(app_name="users")
@app.route("/")
def index(): return {"hello": "world"}
@app.route("/users/me")
def me(): return {"me": True}
@app.route("/users/{name}", methods=["GET", "PUT"])
def user(name): return {"name": name, "method": app.current_request.method, "body": app.current_request.json_body}
`,
};
const env = { PYTHONPATH: installed ?? "" };

const rows: Row[] = [
  { name: "at the root", files, env, body: '{"hello":"world"}' },
  {
    name: "with a parameter",
    files,
    env,
    target: "/users/ada",
    body: /"name":"ada","method":"GET"/,
  },
  { name: "without one, next to it", files, env, target: "/users/me", body: '{"me":true}' },
  {
    name: "with a body",
    files,
    env,
    target: "/users/bob",
    call: {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: '{"a":1}',
    },
    body: '{"name":"bob","method":"PUT","body":{"a":1}}',
  },
];

describe.skipIf(missingPython ?? installed === undefined)("a route of Chalice", () => {
  test.each(rows)("$name", expectAnswer);
});
