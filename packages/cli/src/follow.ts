/** Follows a Function from its conditions until it runs or cannot. */
import {
  type Function,
  type FunctionCondition,
  functionRevisions,
  functions,
  labels,
  revisionsOf,
} from "@spry/function";
import { isGone, isNotFound, type KubeClient } from "@spry/kube";
import { followBuildOutput, followStartOutput } from "./build-output.ts";
import { isConnectionLost } from "./connection-lost.ts";
import { failureIn, withoutDirectory } from "./load-failure.ts";
import { type Progress } from "./progress.ts";
import { missingSource } from "./missing-source.ts";
import { isToBeRetried } from "./retry-build.ts";
import { memoryProblem } from "./short-reason.ts";
import { inNamespace } from "./shown-namespace.ts";
import { UserError } from "./user-error.ts";

/** Of timers. */
const longestMs = 2 ** 31 - 1;
const order = ["ConfigurationReady", "BuildReady", "Running"];
const words: Record<string, string> = {
  ConfigurationReady: "source",
  BuildReady: "build",
  Running: "running",
};

export interface FollowOptions {
  namespace: string;
  name: string;
  /** The generation that has to run; earlier states are the result of earlier changes. */
  generation: number;
  timeoutMs: number;
  progress: Progress;
  /** As the server has just returned it: it need not be read again. */
  stored?: Function;
  /** Before each line, where several Functions are followed. */
  prefix?: string;
}

/** Returns the Function once it runs; throws a UserError with the condition's message when it cannot. */
export async function followUntilRunning(
  client: KubeClient,
  options: FollowOptions,
): Promise<Function> {
  const { namespace, name, progress, prefix = "" } = options;
  const output = new AbortController();
  const start = new AbortController();
  const timeout = AbortSignal.timeout(Math.min(Math.ceil(options.timeoutMs), longestMs));
  const said = new Map<string, string>();
  let last: Function | undefined;
  let isRead = false;
  let isStartRead = false;
  progress.waitFor(name, waitingFor(prefix, words["ConfigurationReady"] ?? ""));
  // Where several are followed, the sentence is about all of them.
  if (prefix === "") progress.whenInterrupted(stillGoing(options));
  try {
    for await (const current of versionsOf(client, options, timeout)) {
      last = current;
      if ((current.status?.observedGeneration ?? 0) < options.generation) continue;
      if (isToBeRetried(current)) continue;
      for (const condition of conditionsOf(current)) {
        // What has failed is described in full at the end, and until a build has ended `Running` is about the version before.
        if (condition.status === "False" && !isRetried(condition.type, current)) break;
        const text = `${condition.status === "True" ? "✔" : condition.status === "False" ? "✘" : "…"} ${
          words[condition.type] ?? condition.type
        }: ${condition.message || condition.reason}`;
        if (said.get(condition.type) !== text) {
          const stage = words[condition.type] ?? condition.type;
          const { status, message, reason } = condition;
          const line = `  ${prefix}${text.split("\n", 1)[0] ?? ""}`;
          if (status === "Unknown") progress.waitFor(name, waitingFor(prefix, stage));
          progress.report(
            { event: "stage", function: name, stage, status, message: message || reason },
            line,
          );
        }
        said.set(condition.type, text);
        if (condition.type === "BuildReady" && condition.status === "Unknown" && !isRead) {
          isRead = true;
          const onLine = (line: string) => progress.output(name, prefix + line);
          void followBuildOutput(client, { namespace, name, onLine }, output.signal);
        }
        if (condition.type === "Running" && condition.status === "Unknown" && !isStartRead) {
          isStartRead = true;
          const onLine = (line: string) => progress.output(name, prefix + withoutDirectory(line));
          void followStartOutput(client, { namespace, name, onLine }, start.signal);
        }
        // Lines that come later would be below another stage; `spry logs --build` has them. And the requests would be in the rollout's way.
        if (condition.type === "BuildReady" && condition.status === "True") output.abort();
        if (condition.status !== "True") break;
      }
      const failed = conditionsOf(current).find(
        (condition) => condition.status === "False" && !isRetried(condition.type, current),
      );
      if (failed) throw failureOf(current, failed, await newestVersion(client, current));
      const conditions = conditionsOf(current);
      if (conditions.length >= order.length && conditions.every(({ status }) => status === "True"))
        return current;
    }
  } catch (error) {
    if (!timeout.aborted) throw error;
  } finally {
    output.abort();
    start.abort();
    progress.done(name);
  }
  const open = conditionsOf(last).find(({ status }) => status !== "True");
  throw new UserError(
    `Function ${namespace}/${name} was not running after ${options.timeoutMs / 1000} s` +
      (open ? `: ${open.type}: ${open.message}` : ""),
    stillGoing(options),
  );
}

/** For a user whose command ends before the Function runs. */
export const stillGoing = ({
  namespace,
  name,
}: Pick<FollowOptions, "namespace" | "name">): string =>
  `the platform continues, and spry describe ${name}${inNamespace(namespace)} shows its state`;

/** On a terminal, with the seconds behind it. */
const waitingFor = (prefix: string, stage: string): string =>
  `  ${prefix}… ${stage === words["Running"] ? "start" : stage}`;

/** The number of the version that is being rolled out; undefined where it has none, or the user may not read it. */
async function newestVersion(client: KubeClient, fn: Function): Promise<number | undefined> {
  const { namespace, name = "" } = fn.metadata;
  const labelSelector = `${labels.functionName}=${name}`;
  try {
    const { items } = await client.list(functionRevisions, { namespace, labelSelector });
    return revisionsOf(fn, items)[0]?.revision;
  } catch {
    return undefined;
  }
}

/** What a user reads of a failure: the place in the code first, then what still works, and where to look further. */
export function failureOf(
  { metadata: { name = "", namespace = "" }, spec, status }: Function,
  { type, reason, message }: Pick<FunctionCondition, "type" | "reason" | "message">,
  version?: number,
): UserError {
  // The version that fails now is the one that has served: there is none to fall back on.
  const serving = status?.revision === version ? undefined : status?.revision;
  const still = serving ? `; version ${serving} still serves` : "";
  const target = `${name}${inNamespace(namespace)}`;
  const looks = [
    `spry logs ${type === "BuildReady" ? "--build " : ""}${target} shows more`,
    `spry describe ${target} shows its state`,
    ...(serving ? [`spry rollback ${target} returns to version ${serving}`] : []),
  ];
  const memory = type === "Running" ? memoryProblem(message) : undefined;
  const which = version === undefined ? "the new version" : `version ${version}`;
  if (memory)
    return new UserError(
      `${which} of ${name} failed: ${memory.summary}${still}${memory.details}`,
      [memory.wayOut, ...looks].join("; "),
    );
  const [, words] = /^[^]*?\bexit code \d+\): ([^]+)$/.exec(message) ?? [];
  if (type !== "Running" || words === undefined) {
    const [first = "", ...rest] = (message || reason).split("\n");
    const creation = missingSource(message, { spec, namespace });
    return new UserError(
      [`${name} failed: ${first}${still}`, ...rest].join("\n"),
      [...creation, ...looks].join("; "),
    );
  }
  const { summary, details, wayOut } = failureIn(words);
  const more = details.includes("\n") ? `\n${details.replaceAll(/^(?=.)/gm, "  ")}` : "";
  return new UserError(
    `${which} of ${name} failed: ${summary}${still}${more}`,
    [...(wayOut ? [wayOut] : []), ...looks].join("; "),
  );
}

/** A build that failed because of the infrastructure is run again by itself: worth waiting for, unless a person has to install what it lacks. */
function isRetried(type: string, { status }: Function): boolean {
  if (type !== "BuildReady" || status?.build?.retryAfter === undefined) return false;
  const { message = "" } = status.conditions?.find((each) => each.type === type) ?? {};
  return !lacksInterpreter.test(message);
}

/** As the machine room's `MissingInterpreterError` says it. */
const lacksInterpreter = /(?:^|: )(?:Python|Node\.js) [\d.]+ is not on this machine\b/;

function conditionsOf(object: Function | undefined) {
  const conditions = object?.status?.conditions ?? [];
  return order.flatMap((type) => conditions.find((condition) => condition.type === type) ?? []);
}

/** The object as it is now and each time it changes. */
async function* versionsOf(
  client: KubeClient,
  { namespace, name, stored }: Pick<FollowOptions, "namespace" | "name" | "stored">,
  signal: AbortSignal,
): AsyncGenerator<Function> {
  let known = stored;
  const gone = () => new UserError(`Function ${namespace}/${name} was deleted in the meantime`);
  while (!signal.aborted) {
    try {
      const only = { namespace, fieldSelector: `metadata.name=${name}`, signal };
      // What has just been written can be watched from. Otherwise a list, because only its version is sure to be one that
      // can: an object that has not been written for long has a version that the server may not remember.
      const { items, metadata } = known
        ? { items: [known], metadata: known.metadata }
        : await client.list(functions, only);
      known = undefined;
      const [current] = items;
      if (!current) throw gone();
      yield current;
      const { resourceVersion = "" } = metadata;
      const events = client.watch(functions, { ...only, resourceVersion });
      for await (const event of events) {
        if (event.type === "DELETED") throw gone();
        if (event.type !== "BOOKMARK") yield event.object;
      }
    } catch (error) {
      if (isNotFound(error)) throw gone();
      // The server may be back, or one in its place; if not, the list names what is wrong.
      if (!isGone(error) && !isConnectionLost(error)) throw error;
    }
  }
}
