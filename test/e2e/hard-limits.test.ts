/** Hard limits of Revisions (`containerConcurrency`) with several gateways, which end in turn; counted inside the Function. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type Answer, call } from "../support/calls.ts";
import { functionManifest, pause, Platform } from "../support/platform.ts";
import { untilTrue } from "../support/until-true.ts";

/** How many it has at a time, and the most that it has ever had. */
const source = `let now = 0, most = 0, all = 0;
module.exports = {
  main: async (event) => {
    const { query, path } = event.extensions.request;
    if (query.ask) return JSON.stringify({ most, all });
    all++;
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, Number(query.ms ?? 20)));
    now--;
    return "done";
  },
};`;

const platform = new Platform();
const host = "limited.default.localhost";

beforeAll(async () => {
  await platform.start();
  await platform.k("apply -f -", functionManifest("made", source));
  await platform.k("wait --for=condition=Running function/made --timeout=60s");
  const pinned = "-o jsonpath={.spec.template.spec.containers[0].image}";
  const image = await platform.k(`get deployment made ${pinned}`);
  const env = [
    { name: "FUNC_NAME", value: "limited" },
    { name: "SERVICE_NAMESPACE", value: "default" },
  ];
  const one = {
    "autoscaling.knative.dev/min-scale": "1",
    "autoscaling.knative.dev/max-scale": "1",
  };
  const service = {
    apiVersion: "serving.knative.dev/v1",
    kind: "Service",
    metadata: { name: "limited", namespace: "default" },
    spec: {
      template: {
        metadata: { annotations: one },
        spec: {
          serviceAccountName: "serverless-function",
          containerConcurrency: 1,
          timeoutSeconds: 10,
          containers: [{ image, env }],
        },
      },
    },
  };
  await platform.k("apply -f -", JSON.stringify(service));
  await platform.k("wait --for=condition=Ready ksvc/limited --timeout=60s");
}, 120_000);
afterAll(() => platform.remove(), 60_000);

class Member {
  readonly #process: ChildProcess;
  readonly port: number;
  readonly ended: Promise<void>;

  static async start(): Promise<Member> {
    const [port, admin] = [await freePort(), await freePort()];
    const program = path.join(import.meta.dirname, "../support/gateway-member.ts");
    const token = path.join(platform.dataDir, "counts-token");
    const args = [program, platform.kubeconfig, token, String(port), String(admin)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
    const member = new Member(child, port);
    members.push(member);
    await new Promise((resolve) => child.stdout.once("data", resolve));
    return member;
  }

  private constructor(child: ChildProcess, port: number) {
    this.#process = child;
    this.port = port;
    this.ended = new Promise((resolve) => child.once("exit", () => resolve()));
  }

  end(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal);
    return this.ended;
  }
}

const members: Member[] = [];
afterEach(async () => {
  await Promise.all(members.splice(0).map((member) => member.end("SIGKILL")));
  await platform.k("delete lease serverless-gateway-admission --ignore-not-found");
});

const ask = ({ port }: Member, query = "") => call(port, host, { path: `/${query}` });

async function seen(member: Member): Promise<{ most: number; all: number }> {
  let answer: Answer = await ask(member, "?ask=1");
  await untilTrue(
    "an answer",
    async () => (answer = await ask(member, "?ask=1")).status === 200,
    60_000,
  );
  return JSON.parse(answer.body) as { most: number; all: number };
}

/** Clients that repeat what has failed, at any of the gateways that there are; resolves with how many requests were answered. */
async function clients(gateways: () => Member[], isOver: () => boolean): Promise<number> {
  let answered = 0;
  const client = async (n: number) => {
    for (let i = n; !isOver(); i++) {
      const all = gateways();
      const answer = await ask(all[i % all.length]!).catch(() => undefined);
      if (answer?.status === 200) answered++;
      else await pause(50);
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, n) => client(n)));
  return answered;
}

test("three gateways keep the limit together while each of them ends and others join", async () => {
  const alive = [await Member.start(), await Member.start(), await Member.start()];
  let isOver = false;
  const running = clients(
    () => alive,
    () => isOver,
  );
  for (const signal of ["SIGTERM", "SIGTERM", "SIGTERM"] as const) {
    await pause(2_000);
    // The first one admits.
    const gone = alive.shift()!;
    await gone.end(signal);
    alive.push(await Member.start());
  }
  await pause(2_000);
  isOver = true;
  const answered = await running;
  const { most, all } = await seen(alive[0]!);
  expect(most).toBe(1);
  expect(all).toBeGreaterThanOrEqual(answered);
  expect(answered).toBeGreaterThan(100);
}, 120_000);

test("a gateway that is killed with requests under way does not let its successor start others", async () => {
  const alive = [await Member.start(), await Member.start()];
  expect((await ask(alive[0]!)).status).toBe(200);
  // Until the second one has been written down as knowing everything.
  await untilTrue(
    "a witness",
    async () =>
      /witnesses\\?":\[\\?"/.test(
        await platform.k("get lease serverless-gateway-admission -o json"),
      ),
    10_000,
  );
  const begin = performance.now();
  const lost = ask(alive[0]!, "?ms=6000").catch(() => undefined);
  await pause(500);
  await alive[0]!.end("SIGKILL");
  await lost;
  let answer: Answer | undefined;
  await untilTrue(
    "an answer of the successor's",
    async () => (answer = await ask(alive[1]!)).status === 200,
    60_000,
  );
  // Its Lease, and the Revision's 10 s from then on.
  expect(performance.now() - begin).toBeGreaterThan(10_000);
  expect(answer?.body).toBe("done");
  expect((await seen(alive[1]!)).most).toBe(1);
}, 120_000);

test("under load, one that admits is killed again and again: what clients repeat is answered", async () => {
  const alive = [await Member.start(), await Member.start()];
  let isOver = false;
  const running = clients(
    () => alive,
    () => isOver,
  );
  for (let round = 0; round < 2; round++) {
    await pause(3_000);
    await alive.shift()!.end("SIGKILL");
    alive.push(await Member.start());
    await pause(12_000);
  }
  const before = (await seen(alive[0]!)).all;
  await untilTrue("others are answered", async () => (await seen(alive[0]!)).all > before, 30_000);
  isOver = true;
  await running;
  expect((await seen(alive[0]!)).most).toBe(1);
}, 180_000);
