/** Gateways that keep a Revision's hard limit (`containerConcurrency: 1`) together, next to a platform: processes that a test ends. */
import { type ChildProcess, spawn } from "node:child_process";
import path from "node:path";
import { freePort } from "@spry/test-kit";
import { type Answer, call } from "./calls.ts";
import { functionManifest, pause, type Platform } from "./platform.ts";
import { untilTrue } from "./until-true.ts";

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

const host = "limited.default.localhost";

/** Starts the platform, and on it a Service of one Pod that has one request at a time. */
export async function startLimited(platform: Platform): Promise<void> {
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
}

/** A gateway of its own process, at a port of its own. */
export class Member {
  readonly #process: ChildProcess;
  readonly port: number;
  readonly ended: Promise<void>;

  /** Adds it to `members` at once, also when it never becomes ready; resolves when it is. */
  static async start(platform: Platform, members: Member[]): Promise<Member> {
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

  /** Resolves when it has ended. */
  end(signal: NodeJS.Signals): Promise<void> {
    this.#process.kill(signal);
    return this.ended;
  }
}

/** A request through that gateway. */
export const ask = ({ port }: Member, query = "") => call(port, host, { path: `/${query}` });

/** What its one Pod has seen, asked through that gateway. */
export async function seen(member: Member): Promise<{ most: number; all: number }> {
  let answer: Answer = await ask(member, "?ask=1");
  await untilTrue(
    "an answer",
    async () => (answer = await ask(member, "?ask=1")).status === 200,
    60_000,
  );
  return JSON.parse(answer.body) as { most: number; all: number };
}

/** Clients that repeat what has failed, at any of the gateways that there are; resolves with how many requests were answered. */
export async function clients(gateways: () => Member[], isOver: () => boolean): Promise<number> {
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
