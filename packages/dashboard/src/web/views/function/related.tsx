import { type ComponentChildren } from "preact";
import {
  type ApiRule,
  apiRules,
  type Function,
  functionRevisions,
  labels,
  revisionsOf,
  type Subscription,
  subscriptions,
} from "@spry/function/browser";
import { useLive } from "../../api/live.ts";
import { paths } from "../../router.ts";
import { leadsTo, useDomains } from "../../state/exposed-urls.ts";
import { Age, CopyButton } from "../../ui/basics.tsx";
import { ExposedHost } from "../../ui/exposed-host.tsx";
import { NextRun } from "../../ui/next-run.tsx";

const maxDeployments = 3;

/** What the Function is connected with: where it answers, what calls it, what it reads, and what was deployed last. */
export function Related({ fn }: { fn: Function }) {
  const { namespace = "", name = "" } = fn.metadata;
  const rules = useLive<ApiRule>(apiRules, { namespace });
  const triggers = useLive<Subscription>(subscriptions, { namespace });
  const labelSelector = `${labels.functionName}=${name}`;
  const history = useLive(functionRevisions, { namespace, labelSelector });
  const own = rules.items.value.filter((rule) => leadsTo(rule, namespace, name));
  const domains = useDomains(own);
  const sink = `http://${name}.${namespace}.svc.cluster.local`;
  const events = triggers.items.value.filter(({ spec }) =>
    [sink, `http://${name}.${namespace}`].some(
      (each) =>
        spec.sink === each || spec.sink.startsWith(`${each}/`) || spec.sink.startsWith(`${each}:`),
    ),
  );
  const deployed = revisionsOf(fn, history.items.value).slice(0, maxDeployments);
  const schedules = fn.spec.schedules ?? [];
  const used = objectsUsed(fn);
  return (
    <dl class="related" aria-label="Related objects">
      <Part title="Inside the cluster">
        <span class="url">
          <span class="mono clip">{sink}</span>
          <CopyButton text={sink} label="Copy the URL inside the cluster" />
        </span>
      </Part>
      <Part title="Exposed at" problem={unseen(rules)} isEmpty={own.length === 0}>
        {own.flatMap(({ metadata, spec }) =>
          (spec.hosts ?? []).map((host) => (
            <ExposedHost
              key={`${metadata.uid} ${host}`}
              host={host}
              domain={domains.get(spec.gateway ?? "")}
            />
          )),
        )}
      </Part>
      <Part title="Gets events" problem={unseen(triggers)} isEmpty={events.length === 0}>
        {events.map(({ metadata, spec }) => (
          <a key={metadata.uid} href={`/events?ns=${encodeURIComponent(namespace)}`}>
            {spec.types.join(", ")}
          </a>
        ))}
      </Part>
      <Part title="Is called" isEmpty={schedules.length === 0}>
        {schedules.map((each) => (
          <span key={each.name}>
            <a href={`/calls?ns=${encodeURIComponent(namespace)}`}>{each.name}</a>{" "}
            <span class="muted">
              <NextRun schedule={each} />
            </span>
          </span>
        ))}
      </Part>
      <Part title="Reads" isEmpty={used.length === 0}>
        {used.map(({ kind, name }) => (
          <span key={`${kind} ${name}`}>
            <span class="muted">{kind}</span>{" "}
            <a href={paths.fn(namespace, fn.metadata.name ?? "", "settings")}>{name}</a>
          </span>
        ))}
      </Part>
      <Part title="Deployed" problem={unseen(history)} isEmpty={deployed.length === 0}>
        {deployed.map(({ metadata, revision, data }) => (
          <span key={metadata.uid}>
            <a href={paths.fn(namespace, name, "history")}>version {revision}</a>{" "}
            <span class="muted">
              <Age time={data.time} /> ago{data.author && ` by ${data.author}`}
            </span>
          </span>
        ))}
      </Part>
    </dl>
  );
}

/** A right that is missing is not "none". */
const unseen = ({ isReady, problem }: ReturnType<typeof useLive>): boolean =>
  !isReady.value && problem.value !== "";

function Part({
  title,
  problem = false,
  isEmpty = false,
  children,
}: {
  title: string;
  problem?: boolean;
  isEmpty?: boolean;
  children: ComponentChildren;
}) {
  if (isEmpty && !problem) return null;
  return (
    <div>
      <dt>{title}</dt>
      <dd>{problem ? <span class="muted">not visible to you</span> : children}</dd>
    </div>
  );
}

interface UsedObject {
  kind: "Secret" | "ConfigMap";
  name: string;
}

/** In variables, mounts, and for the repository. */
export function objectsUsed({ spec }: Pick<Function, "spec">): UsedObject[] {
  const found = new Map<string, UsedObject>();
  const add = (kind: UsedObject["kind"], name: string | undefined) => {
    if (name) found.set(`${kind} ${name}`, { kind, name });
  };
  for (const { valueFrom } of spec.env ?? []) {
    add("Secret", valueFrom?.secretKeyRef?.name);
    add("ConfigMap", valueFrom?.configMapKeyRef?.name);
  }
  for (const { secretName } of spec.secretMounts ?? []) add("Secret", secretName);
  add("Secret", spec.source.gitRepository?.auth?.secretName);
  return [...found.values()];
}
