import { isServedOnDemand } from "@spry/function";
import {
  isNotFound,
  type KubeClient,
  type KubeList,
  type Pod,
  resources,
  StatusError,
} from "@spry/kube";
import { hasStarted, stepsOf, untilBegun } from "../build-output.ts";
import { connect, type GlobalOptions } from "../connection.ts";
import { unansweredRequests } from "../gateway-log.ts";
import { findFunction } from "../find-function.ts";
import { type EndedRun, endedRuns, FollowedRuns } from "../log-runs.ts";
import { type LogFilter, shownLine } from "../log-lines.ts";
import { withShownCommands } from "../shown-command.ts";
import { UserError } from "../user-error.ts";

export interface LogsOptions extends GlobalOptions, LogFilter {
  follow?: boolean;
  tail?: number;
  /** Seconds. */
  since?: number;
  /** Of the runs of containers before those that run: why they have ended. */
  previous?: boolean;
  timestamps?: boolean;
  build?: boolean;
}

const label = "serverless.kyma-project.io";

export async function logs(name: string, options: LogsOptions): Promise<void> {
  const { client, namespace } = await connect(options);
  const fn = await findFunction(client, namespace, name);
  const labelSelector = options.build
    ? `${label}/function-name=${name},${label}/resource!=deployment`
    : `${label}/function-name=${name},${label}/resource=deployment`;
  const pods = await client.list(resources.pods, { namespace, labelSelector });
  const chosen = options.build ? newest(pods.items) : pods.items;
  if (chosen.length === 0 && !options.follow) {
    // At zero, which is as it should be.
    if (!options.build && !options.request && isServedOnDemand(fn.spec))
      return console.error(withShownCommands(atZero(name)));
    throw new UserError(
      `Function ${name} has no ${options.build ? "build" : "instance"} with output`,
      `spry describe ${name} shows its state`,
    );
  }
  const printer = new Printer(options, chosen.length > 1);
  const streams = chosen.map((pod) => printAll(client, pod, options, printer));
  if (!options.follow) {
    await Promise.all(streams);
    const { request } = options;
    if (request && !options.build) {
      const about = { id: request, pods: chosen, since: options.since };
      const found = await unansweredRequests(client, { namespace, name }, about);
      for (const { gateway, time, message } of found ?? [])
        printer.write(gateway, `${time} ERROR [${request}] ${message}\n`);
      if (printer.count === 0) console.error(noLine(name, request, found !== undefined));
    } else if (!request && printer.count === 0 && process.stderr.isTTY)
      console.error(withShownCommands(silence(name, options)));
    return;
  }
  await followRuns(client, { namespace, labelSelector }, { options, printer, pods, chosen });
}

/** Shows what further Pods write, and each further run of a container; ends only with an error. */
async function followRuns(
  client: KubeClient,
  where: { namespace: string; labelSelector: string },
  {
    options,
    printer,
    pods,
    chosen,
  }: { options: LogsOptions; printer: Printer; pods: KubeList<Pod>; chosen: Pod[] },
): Promise<void> {
  const { tail: _tail, since: _since, ...whole } = options;
  const seen = new Set(options.build ? pods.items.map(({ metadata }) => metadata.uid) : []);
  const runs = new FollowedRuns();
  for (const pod of chosen) runs.begun(pod);
  let { resourceVersion } = pods.metadata;
  const show = (pod: Pod) => {
    const { name = "", uid } = pod.metadata;
    // The steps of a build are followed as a whole.
    if (options.build && seen.has(uid)) return;
    const begun = runs.begun(pod);
    if (!begun) return;
    seen.add(uid);
    if (begun.after !== undefined) console.error(`${name} ${begun.after}`);
    void printAll(client, pod, whole, printer);
  };
  // A server ends a watch after some time.
  for (;;) {
    const events = client.watch(resources.pods, {
      ...where,
      resourceVersion: resourceVersion ?? "",
    });
    try {
      for await (const { type, object } of events) {
        ({ resourceVersion } = object.metadata);
        if (type === "ADDED" || type === "MODIFIED") show(object);
      }
    } catch (error) {
      if (!(error instanceof StatusError) || error.code !== 410) throw error;
      const { items, metadata } = await client.list(resources.pods, where);
      ({ resourceVersion } = metadata);
      for (const pod of items) show(pod);
    }
  }
}

const atZero = (name: string): string =>
  `${name} has no instance now: the next request starts one; \`spry logs -f ${name}\` waits for it`;

const noLine = (name: string, request: string, isWhole: boolean): string =>
  `no line of ${name} names the request ${request}; a process that was killed writes none` +
  (isWhole ? ": " : ", and you may not read the gateway's log, which names such requests: ") +
  `spry describe ${name} shows why instances ended, --previous what they wrote`;

/** On a terminal: nothing at all would look like a mistake. */
const silence = (name: string, { build, tail, since, level, previous }: LogsOptions): string =>
  build || previous || tail !== undefined || since !== undefined || level !== undefined
    ? `no line of ${name} matches these options`
    : `${name} has written nothing yet; \`spry logs -f ${name}\` waits for what it writes`;

/** Its only container, or the steps of a build, one after the other. */
async function printAll(
  client: KubeClient,
  pod: Pod,
  options: LogsOptions,
  printer: Printer,
): Promise<void> {
  if (!options.build) {
    // A request that ended an instance is in the log of that one.
    const hasPrevious = pod.status?.containerStatuses?.some(({ restartCount }) => restartCount > 0);
    if (options.request && !options.previous && hasPrevious) {
      const before = { ...options, follow: false, previous: true };
      for (const { earlier } of endedRuns(pod))
        await print(client, pod, before, printer, { earlier });
    }
    if (!options.previous) return print(client, pod, options, printer);
    const runs = endedRuns(pod);
    // One alone needs no mark.
    for (const { run, earlier } of runs)
      await print(client, pod, options, printer, runs.length > 1 ? { run, earlier } : { earlier });
    return;
  }
  const never = new AbortController().signal;
  for (const step of stepsOf(pod)) {
    // After one that has failed none begins.
    const hasBegun = options.follow
      ? await untilBegun(client, pod, step, never)
      : hasStarted(pod, step);
    if (hasBegun) await print(client, pod, options, printer, { container: step });
  }
}

function newest(pods: Pod[]): Pod[] {
  const time = (pod: Pod) => Date.parse(pod.metadata.creationTimestamp ?? "") || 0;
  return pods.sort((a, b) => time(b) - time(a)).slice(0, 1);
}

async function print(
  client: KubeClient,
  pod: Pod,
  options: LogsOptions,
  printer: Printer,
  { container, run, earlier = 0 }: Partial<EndedRun> & { container?: string } = {},
): Promise<void> {
  const { name = "", namespace = "" } = pod.metadata;
  const query = new URLSearchParams();
  if (container !== undefined) query.set("container", container);
  if (options.follow) query.set("follow", "true");
  if (options.tail !== undefined) query.set("tailLines", String(options.tail));
  if (options.since !== undefined) query.set("sinceSeconds", String(options.since));
  if (options.previous) query.set("previous", "true");
  if (earlier > 0) query.set("earlier", String(earlier));
  if (options.timestamps) query.set("timestamps", "true");
  try {
    const response = await client.raw(
      "GET",
      `/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`,
      {
        accept: "*/*",
      },
    );
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? [])
      printer.write(name, decoder.decode(chunk, { stream: true }), run);
    printer.end(name, run);
  } catch (error) {
    // It was replaced since the list was read.
    if (isNotFound(error) && container === undefined && !options.previous) return;
    const { message } = error as Error;
    const isFirst = options.previous && /previous terminated container/.test(message);
    // What ended longer ago need not be kept.
    if (isFirst && earlier > 0) return;
    console.error(isFirst ? `${name} has not been restarted` : `${name}: ${message}`);
  }
}

/** Puts the instance's name before each of its lines as soon as there is more than one, and the run where several are shown. */
class Printer {
  /** Of lines that were shown. */
  count = 0;
  readonly #open = new Map<string, string>();
  readonly #filter: LogFilter;
  readonly #areSeveral: boolean;

  /** `areSeveral`: known from the start, so that every line has the name. */
  constructor(filter: LogFilter, areSeveral: boolean) {
    this.#filter = filter;
    this.#areSeveral = areSeveral;
  }

  write(instance: string, text: string, run?: number): void {
    const lines = ((this.#open.get(instance) ?? "") + text).split("\n");
    this.#open.set(instance, lines.pop() ?? "");
    for (const line of lines) this.#print(instance, line, run);
  }

  /** The incomplete last line. */
  end(instance: string, run?: number): void {
    const rest = this.#open.get(instance) ?? "";
    this.#open.set(instance, "");
    if (rest !== "") this.#print(instance, rest, run);
  }

  #print(instance: string, line: string, run: number | undefined): void {
    const isMarked = this.#areSeveral || this.#open.size > 1 || run !== undefined;
    const name = isMarked || this.#filter.json ? instance : undefined;
    const shown = shownLine(line, name, this.#filter, process.stdout.isTTY, run);
    if (shown === undefined) return;
    this.count++;
    process.stdout.write(`${shown}\n`);
  }
}
