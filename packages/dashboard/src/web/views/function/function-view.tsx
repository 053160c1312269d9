import { type ComponentType } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { type Function, functions, knativeLabels, labels } from "@spry/function/browser";
import { type Pod, resources } from "@spry/kube/browser";
import { useLive } from "../../api/live.ts";
import { paths } from "../../router.ts";
import { draftOf } from "../../state/drafts.ts";
import { stateOf } from "../../state/function-state.ts";
import { isRead } from "../../state/typed.ts";
import { urlOf } from "../../state/info.ts";
import { CopyButton, Empty, Problem, State } from "../../ui/basics.tsx";
import { Boundary } from "../../ui/boundary.tsx";
import { Frame } from "../../ui/frame.tsx";
import { Icon } from "../../ui/icon.tsx";
import { later } from "../../ui/later.tsx";
import { DraftsElsewhere } from "./drafts-elsewhere.tsx";
import { DraftsOfDeleted } from "./drafts-of-deleted.tsx";
import { Chain } from "./chain.tsx";
import { CodeTab } from "./code-tab.tsx";
import { ConditionProblem } from "./condition-problem.tsx";
import { BuildsTab } from "./builds-tab.tsx";
import { LogsTab } from "./logs-tab.tsx";
import { MetricsTab } from "./metrics-tab.tsx";
import { SettingsTab } from "./settings-tab.tsx";
import { EventsTab } from "./events-tab.tsx";
import { SaveBar } from "./save-bar.tsx";
import { type TabProps } from "./tab-props.ts";

const Related = later(async () => (await import("./related.tsx")).Related);
const TryTab = later(async () => (await import("./try-tab.tsx")).TryTab);
const HistoryTab = later(async () => (await import("./history-tab.tsx")).HistoryTab);
const YamlTab = later(async () => (await import("./yaml-tab.tsx")).YamlTab);

const tabs: { id: string; title: string; view: ComponentType<TabProps> }[] = [
  { id: "code", title: "Code", view: CodeTab },
  { id: "try", title: "Try it", view: TryTab },
  { id: "logs", title: "Logs", view: LogsTab },
  { id: "metrics", title: "Metrics", view: MetricsTab },
  { id: "settings", title: "Settings", view: SettingsTab },
  { id: "history", title: "History", view: HistoryTab },
  { id: "builds", title: "Builds", view: BuildsTab },
  { id: "events", title: "Events", view: EventsTab },
  { id: "yaml", title: "YAML", view: YamlTab },
];

export function FunctionView({
  namespace,
  name,
  tab = "code",
}: {
  namespace: string;
  name: string;
  tab: string | undefined;
}) {
  const { items, isReady, problem } = useLive(functions, {
    namespace,
    fieldSelector: `metadata.name=${name}`,
  });
  const pods = useLive(resources.pods, {
    namespace,
    labelSelector: `${labels.functionName}=${name}`,
  });
  const [fn] = items.value;
  const bar = useRef<HTMLElement>(null);
  const isShown = fn !== undefined;
  // On a phone the bar is wider than the screen.
  useEffect(() => {
    const current = bar.current?.querySelector<HTMLElement>("[aria-current]");
    if (bar.current && current)
      bar.current.scrollLeft =
        current.offsetLeft - (bar.current.clientWidth - current.offsetWidth) / 2;
  }, [tab, isShown]);
  const instances = useMemo(() => pods.items.value.filter(isInstance), [pods.items.value]);
  const podsProblem = pods.isReady.value ? "" : pods.problem.value;
  const crumbs = (
    <>
      <a href={paths.functions()} class="not-phone">
        Functions
      </a>
      <span aria-hidden="true" class="not-phone">
        /
      </span>
      <a href={paths.functions(namespace)} class="not-phone">
        {namespace}
      </a>
      <span aria-hidden="true" class="not-phone">
        /
      </span>
      <h1 class="clip">{name}</h1>
    </>
  );
  const chosen = tabs.find(({ id }) => id === tab) ?? tabs[0];
  // What was typed before must be there before anything more is typed.
  if (!fn || !chosen || !isRead.value) {
    return (
      <Frame title={name} crumbs={crumbs}>
        {isReady.value && isRead.value && !fn ? (
          <div class="stack loose">
            <Missing namespace={namespace} name={name} />
            <DraftsOfDeleted namespace={namespace} name={name} />
          </div>
        ) : (
          problem.value && <Problem title="This Function cannot be read" text={problem.value} />
        )}
      </Frame>
    );
  }
  const Tab = chosen.view;
  return (
    <Frame title={`${name}: ${chosen.title}`} crumbs={crumbs}>
      <div class="stack loose">
        <Boundary name="The state of the Function">
          <Head fn={fn} />
          <Chain fn={fn} pods={instances} podsProblem={podsProblem} />
          <ConditionProblem fn={fn} />
          <Related fn={fn} />
        </Boundary>
        <nav class="tabs" aria-label="Views of the Function" ref={bar}>
          {tabs.map(({ id, title }) => (
            <a
              key={id}
              href={paths.fn(namespace, name, id)}
              aria-current={id === chosen.id ? "page" : undefined}
            >
              {title}
            </a>
          ))}
        </nav>
        <DraftsOfDeleted namespace={namespace} name={name} fn={fn} />
        <DraftsElsewhere fn={fn} />
        <Boundary key={chosen.id} name={`The tab ${chosen.title}`}>
          <Tab fn={fn} pods={instances} podsProblem={podsProblem} />
        </Boundary>
        {draftOf(fn).value && (
          <Boundary name="The bar of changes">
            <SaveBar fn={fn} />
          </Boundary>
        )}
      </div>
    </Frame>
  );
}

/** Whether a Pod runs the Function itself, as a Deployment or with Knative. The others are builds. */
const isInstance = ({ metadata }: Pod): boolean =>
  metadata.labels?.[labels.resource] === "deployment" ||
  knativeLabels.revision in (metadata.labels ?? {});

function Head({ fn }: { fn: Function }) {
  const { word, tone, note } = stateOf(fn);
  const url = urlOf(fn);
  return (
    <div class="fn-head">
      <span role="status" data-testid="state">
        <State tone={tone} pill>
          {word}
        </State>
      </span>
      {note && <span class="muted">{note}</span>}
      <span class="muted">{fn.status?.runtime ?? fn.spec.runtime}</span>
      {url !== undefined && (
        <span class="url">
          <a href={url} target="_blank" rel="noreferrer" class="clip">
            {url}
          </a>
          <CopyButton text={url} label="Copy the URL" />
        </span>
      )}
    </div>
  );
}

function Missing({ namespace, name }: { namespace: string; name: string }) {
  return (
    <Empty
      title={`Function ${name} not found in namespace ${namespace}`}
      actions={
        <>
          <a class="button" href={paths.functions()}>
            All Functions
          </a>
          <a class="button primary" href={paths.create(namespace)}>
            <Icon name="plus" />
            Create a Function
          </a>
        </>
      }
    >
      It may have been deleted, or it has another name.
    </Empty>
  );
}
