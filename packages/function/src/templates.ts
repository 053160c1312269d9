/** What a new Function can begin with: files for each kind of handler, as `spry init` writes them and the dashboard shows them. */

import { type FunctionSchedule } from "./types.ts";

export type Language = "nodejs" | "python";

/** A kind of handler, with its files by their paths. */
export interface Template {
  name: string;
  language: Language;
  /** Shown by `spry init --list`. */
  description: string;
  files: Record<string, string>;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  requirements?: string[];
  /** When the Function is called by itself. */
  schedules?: FunctionSchedule[];
  /** The handler is not TypeScript. */
  isPlain?: boolean;
}

const httpTest = (file: string) => `import assert from "node:assert/strict";
import test from "node:test";
import handler from "./${file}";

test("greets", async () => {
  const response = await handler.fetch(new Request("http://localhost/?name=you"));
  assert.equal(response.status, 200);
  assert.deepEqual(await response.json(), { message: "Hello, you!" });
});
`;

const nodeTemplates: Template[] = [
  {
    name: "http",
    language: "nodejs",
    description: "TypeScript, the web's Request and Response (default)",
    files: {
      "handler.ts": `export default {
  async fetch(request: Request): Promise<Response> {
    const { searchParams } = new URL(request.url);
    const name = searchParams.get("name") ?? "world";
    return Response.json({ message: \`\${process.env.GREETING ?? "Hello"}, \${name}!\` });
  },
};
`,
      "handler.test.ts": httpTest("handler.ts"),
    },
    devDependencies: { "@types/node": "^24" },
  },
  {
    name: "js",
    language: "nodejs",
    isPlain: true,
    description: "JavaScript, the web's Request and Response",
    files: {
      "handler.js": `export default {
  async fetch(request) {
    const { searchParams } = new URL(request.url);
    const name = searchParams.get("name") ?? "world";
    return Response.json({ message: \`\${process.env.GREETING ?? "Hello"}, \${name}!\` });
  },
};
`,
      "handler.test.js": httpTest("handler.js"),
    },
  },
  {
    name: "hono",
    language: "nodejs",
    description: "TypeScript, a REST API with Hono",
    files: {
      "handler.ts": `import { Hono } from "hono";

const notes = new Map<string, string>();
const app = new Hono();

app.get("/", (c) => c.json({ message: \`\${process.env.GREETING ?? "Hello"}!\` }));
app.get("/notes/:id", (c) => {
  const text = notes.get(c.req.param("id"));
  return text === undefined ? c.json({ error: "not found" }, 404) : c.json({ text });
});
app.put("/notes/:id", async (c) => {
  notes.set(c.req.param("id"), await c.req.text());
  return c.body(null, 204);
});

export default app;
`,
      "handler.test.ts": `import assert from "node:assert/strict";
import test from "node:test";
import app from "./handler.ts";

test("keeps a note", async () => {
  await app.request("/notes/1", { method: "PUT", body: "milk" });
  const response = await app.request("/notes/1");
  assert.deepEqual(await response.json(), { text: "milk" });
});
`,
    },
    dependencies: { hono: "^4" },
    devDependencies: { "@types/node": "^24" },
  },
  {
    name: "express",
    language: "nodejs",
    description: "TypeScript, an Express application",
    files: {
      "handler.ts": `import express from "express";

export const app = express();
app.use(express.json());

app.get("/", (request, response) => {
  const { name = "world" } = request.query;
  response.json({ message: \`\${process.env.GREETING ?? "Hello"}, \${name}!\` });
});
`,
      "handler.test.ts": `import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo } from "node:net";
import test from "node:test";
import { app } from "./handler.ts";

test("greets", async () => {
  const server = app.listen(0);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const response = await fetch(\`http://localhost:\${port}/?name=you\`);
  assert.deepEqual(await response.json(), { message: "Hello, you!" });
  server.close();
});
`,
    },
    dependencies: { express: "^5" },
    devDependencies: { "@types/express": "^5", "@types/node": "^24" },
  },
  {
    name: "queue",
    language: "nodejs",
    description: "TypeScript, a worker for calls that wait in the queue",
    files: {
      "handler.ts": `/** What callers send with the header \`Prefer: respond-async\`: it waits in the platform's queue. */
interface Job {
  to?: string;
  text?: string;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const { to, text = "" } = (await request.json()) as Job;
    // A 4xx response ends the call; after an error or a 5xx response it is tried again.
    if (!to) return Response.json({ error: "to is missing" }, { status: 400 });
    console.log(\`sending \${text.length} characters to \${to}\`);
    return Response.json({ sent: to });
  },
};
`,
      "handler.test.ts": `import assert from "node:assert/strict";
import test from "node:test";
import handler from "./handler.ts";

const send = (job: object) =>
  handler.fetch(new Request("http://localhost/", { method: "POST", body: JSON.stringify(job) }));

test("does a job, and refuses one that cannot be done", async () => {
  assert.deepEqual(await (await send({ to: "ann", text: "hello" })).json(), { sent: "ann" });
  assert.equal((await send({})).status, 400);
});
`,
    },
    devDependencies: { "@types/node": "^24" },
  },
  {
    name: "cloudevent",
    language: "nodejs",
    description: "TypeScript, called for each CloudEvent",
    files: {
      "handler.ts": `interface Order {
  id: string;
  amount: number;
}

export async function main(event: any): Promise<void> {
  const order = event.data as Order;
  console.log(\`\${event["ce-type"]} from \${event["ce-source"]}: order \${order.id}\`);
  // Publishes an event of its own:
  if (order.amount > 100) await event.emitCloudEvent("order.large.v1", "shop", order);
}
`,
      "event.json": `{
  "specversion": "1.0",
  "type": "order.created.v1",
  "source": "shop",
  "id": "1",
  "datacontenttype": "application/json",
  "data": { "id": "A-1", "amount": 120 }
}
`,
      "handler.test.ts": `import assert from "node:assert/strict";
import test from "node:test";
import { main } from "./handler.ts";

test("publishes large orders", async () => {
  const emitted: unknown[][] = [];
  await main({
    "ce-type": "order.created.v1",
    "ce-source": "shop",
    data: { id: "A-1", amount: 120 },
    emitCloudEvent: async (...event: unknown[]) => void emitted.push(event),
  });
  assert.equal(emitted[0]?.[0], "order.large.v1");
});
`,
    },
    devDependencies: { "@types/node": "^24" },
  },
  {
    name: "cron",
    language: "nodejs",
    description: "TypeScript, called on a schedule",
    files: {
      "handler.ts": `export default {
  async fetch(request: Request): Promise<Response> {
    if (request.method !== "POST") return new Response("called on a schedule, by POST\\n");
    const at = new Date().toISOString();
    console.log(\`cleaning up at \${at}\`);
    return Response.json({ done: true, at });
  },
};
`,
      "handler.test.ts": `import assert from "node:assert/strict";
import test from "node:test";
import handler from "./handler.ts";

test("runs", async () => {
  const response = await handler.fetch(new Request("http://localhost/", { method: "POST" }));
  assert.equal(response.status, 200);
});
`,
    },
    schedules: [{ name: "cleanup", cron: "*/5 * * * *", overlap: "Skip" }],
    devDependencies: { "@types/node": "^24" },
  },
];

const pythonTemplates: Template[] = [
  {
    name: "http",
    language: "python",
    description: "Python, a WSGI function without dependencies (default)",
    files: {
      "handler.py": `import json
import os
from urllib.parse import parse_qs


def app(environ, start_response):
    query = parse_qs(environ.get("QUERY_STRING", ""))
    name = query.get("name", ["world"])[0]
    body = json.dumps({"message": f"{os.environ.get('GREETING', 'Hello')}, {name}!"}).encode()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
`,
      "test_handler.py": `import unittest

from handler import app


class Greeting(unittest.TestCase):
    def test_greets(self):
        status = []
        body = b"".join(app({"QUERY_STRING": "name=you"}, lambda line, headers: status.append(line)))
        self.assertEqual(status, ["200 OK"])
        self.assertEqual(body, b'{"message": "Hello, you!"}')


if __name__ == "__main__":
    unittest.main()
`,
    },
    requirements: [],
  },
  {
    name: "fastapi",
    language: "python",
    description: "Python, a REST API with FastAPI; documented at /docs",
    files: {
      "handler.py": `import os

from fastapi import FastAPI

app = FastAPI(title="{{name}}")


@app.get("/")
async def greet(name: str = "world"):
    return {"message": f"{os.environ.get('GREETING', 'Hello')}, {name}!"}
`,
      "test_handler.py": `import asyncio
import unittest

from handler import greet


class Greeting(unittest.TestCase):
    def test_greets(self):
        self.assertEqual(asyncio.run(greet("you")), {"message": "Hello, you!"})


if __name__ == "__main__":
    unittest.main()
`,
    },
    requirements: ["fastapi>=0.115,<1"],
  },
  {
    name: "cloudevent",
    language: "python",
    description: "Python, called for each CloudEvent",
    files: {
      "handler.py": `import functions_framework


@functions_framework.cloud_event
def handle(event):
    print(f"{event['type']} from {event['source']}: order {event.data['id']}")
`,
      "event.json": `{
  "specversion": "1.0",
  "type": "order.created.v1",
  "source": "shop",
  "id": "1",
  "datacontenttype": "application/json",
  "data": { "id": "A-1", "amount": 120 }
}
`,
    },
    requirements: [],
  },
];

/** Templates in the order in which they are listed; the first of a language is its default. */
export const templates: readonly Template[] = [...nodeTemplates, ...pythonTemplates];
