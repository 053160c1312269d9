/** What those who have no login can take from those who have one. */
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { type Dashboard, type DashboardOptions, startDashboard } from "../index.ts";
import { Sessions } from "./sessions.ts";

const key = Buffer.alloc(32, 7);
const known = "of.a-service-account";
const asked: string[] = [];
let dashboard: Dashboard;

const start = (more: Partial<DashboardOptions> = {}) =>
  startDashboard({
    host: "127.0.0.1",
    port: 0,
    key,
    version: "1",
    web: async () => new Map(),
    access: {
      asOwner: async () => new Response("{}"),
      // Like an API server that knows one token.
      async withToken(request) {
        asked.push(`${request.method} ${new URL(request.url).pathname}`);
        const isKnown = request.headers.get("authorization") === `Bearer ${known}`;
        return new Response("{}", { status: isKnown ? 201 : 401 });
      },
    },
    ...more,
  });
beforeEach(async () => {
  asked.length = 0;
  dashboard = await start();
});
afterEach(() => dashboard.close());

const review = "POST /apis/authentication.k8s.io/v1/selfsubjectreviews";
const ownToken = () => {
  const sessions = new Sessions(key);
  return sessions.redeem(sessions.issueCode())?.token ?? "";
};

/** Sends a head that announces `length` bytes, and `sent` of them; returns what is answered before the rest. */
function begin(token: string, { length, sent }: { length: number; sent: number }) {
  const socket = connect(Number(new URL(dashboard.url).port), "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => {});
  const answer = new Promise<string>((resolve) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk;
      resolve(text.slice(0, 12));
    });
    socket.on("close", () => resolve(text.slice(0, 12)));
  });
  socket.write(
    `POST /call HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${token}\r\nContent-Length: ${length}\r\n\r\n`,
  );
  const taken = new Promise<void>((resolve) =>
    socket.write(Buffer.alloc(sent, 32), () => resolve()),
  );
  return { answer, taken };
}

describe("a request", () => {
  test("with an invented token is refused before its body is received", async () => {
    const { answer } = begin("invented", { length: 9e6, sent: 0 });
    expect(await answer).toBe("HTTP/1.1 401");
    expect(asked).toEqual([review]);
  });

  test("with a token that the API server knows is not asked about each time", async () => {
    for (let i = 0; i < 3; i++)
      await fetch(`${dashboard.url}/k8s/api/v1/namespaces`, {
        headers: { authorization: `Bearer ${known}` },
      });
    expect(asked).toEqual([review, ...Array.from({ length: 3 }, () => "GET /api/v1/namespaces")]);
  });

  test("is refused where many others hold memory, and another user's is not", async () => {
    const token = ownToken();
    const held = Array.from({ length: 8 }, () => begin(token, { length: 10e6, sent: 9e6 }));
    expect(await Promise.race(held.map(({ answer }) => answer))).toBe("HTTP/1.1 503");
    const body = `{"namespace":"default","name":"none"}\n`;
    const { status } = await fetch(`${dashboard.url}/call`, {
      method: "POST",
      headers: { authorization: `Bearer ${known}` },
      body,
    });
    expect(status).toBe(400);
  });

  test("that is not sent to its end does not stay", async () => {
    await dashboard.close();
    dashboard = await start({ requestTimeoutMs: 50 });
    const { answer } = begin(ownToken(), { length: 100, sent: 10 });
    expect(await answer).toBe("HTTP/1.1 408");
  });
});

describe("a tab", () => {
  const open = () => {
    const { url } = dashboard;
    const socket = new WebSocket(`${url.replace("http", "ws")}/socket`, { origin: url });
    onTestFinished(() => socket.terminate());
    socket.on("error", () => {});
    const messages: string[] = [];
    socket.on("message", (data: Buffer) => messages.push(data.toString("utf8")));
    const closed = new Promise<number>((resolve) => socket.on("close", resolve));
    const opened = new Promise<void>((resolve) => socket.on("open", () => resolve()));
    const logIn = async (token: string) => {
      await opened;
      socket.send(JSON.stringify({ type: "login", token }));
    };
    return { messages, closed, opened, logIn };
  };
  const welcome = '{"type":"welcome"}';

  test("is not welcome with an invented token", async () => {
    const tab = open();
    await tab.logIn("invented");
    expect(await tab.closed).toBe(4401);
    expect(tab.messages).toEqual([]);
  });

  test("has its place, however many connections never log in", async () => {
    const strangers = Array.from({ length: 120 }, open);
    await Promise.all(strangers.map(({ opened }) => opened));
    const tab = open();
    await tab.logIn(ownToken());
    await expect.poll(() => tab.messages).toEqual([welcome]);
  });

  test("of those with tokens takes no place of those with links", async () => {
    const foreign = Array.from({ length: 51 }, open);
    for (const tab of foreign) await tab.logIn(known);
    expect(await Promise.race(foreign.map(({ closed }) => closed))).toBe(4503);
    const tab = open();
    await tab.logIn(ownToken());
    await expect.poll(() => tab.messages).toEqual([welcome]);
  });
});

test("600 connections that send their heads slowly keep no user away", async () => {
  const port = Number(new URL(dashboard.url).port);
  const slow = Array.from({ length: 600 }, () => {
    const socket = connect(port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nHo"));
    onTestFinished(() => void socket.destroy());
    return socket.on("error", () => {});
  });
  await Promise.all(slow.map((socket) => new Promise((resolve) => socket.once("ready", resolve))));
  const begin = performance.now();
  expect((await fetch(`${dashboard.url}/info`)).status).toBe(200);
  expect(performance.now() - begin).toBeLessThan(2_000);
});
