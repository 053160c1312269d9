import { useMemo } from "preact/hooks";
import { type Function, functions } from "@spry/function/browser";
import { useLive } from "../api/live.ts";
import { useNamespaceNames } from "../api/namespace-names.ts";
import { paths, query, setQuery } from "../router.ts";
import { draftOf } from "../state/drafts.ts";
import { sourceOf, stateOf } from "../state/function-state.ts";
import { urlOf } from "../state/info.ts";
import { useLastDeployment } from "../state/last-deployment.ts";
import { listedFunctions } from "../state/listed-functions.ts";
import { namespaceForNew } from "../state/rights.ts";
import { Age, Empty, Problem, State } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";
import { Icon } from "../ui/icon.tsx";
import { NamespaceChoice } from "../ui/namespace-choice.tsx";
import { usePhone } from "../ui/use-phone.ts";
import { VirtualList } from "../ui/virtual-list.tsx";

const rowHeights = { desk: 46, phone: 62 };

export function FunctionsView() {
  const namespace = query.value.get("ns") ?? undefined;
  const text = query.value.get("q") ?? "";
  const { items, isReady, problem } = useLive(functions, { namespace, keep: listedFunctions });
  const isPhone = usePhone();
  const order = query.value.get("sort") ?? "";
  const shown = useMemo(
    () => inOrder(matching(items.value, text), order),
    [items.value, text, order],
  );
  const hasNone = isReady.value && items.value.length === 0;
  const forNew = namespaceForNew(namespace, useNamespaceNames(), "functions");
  return (
    <Frame
      title="Functions"
      isFixed
      actions={
        forNew !== undefined && (
          <a class="button primary" href={paths.create(forNew)}>
            <Icon name="plus" />
            <span class="not-phone">Create Function</span>
            <span class="only-phone">Create</span>
          </a>
        )
      }
    >
      <div class="toolbar">
        <input
          type="search"
          id="search"
          aria-label="Search Functions"
          placeholder="Search by name, state, runtime …"
          value={text}
          onInput={({ currentTarget }) => setQuery({ q: currentTarget.value })}
        />
        <NamespaceChoice value={namespace} hasAll onChange={(ns) => setQuery({ ns })} />
        <span class="muted nowrap" role="status">
          {isReady.value && countText(shown.length, items.value.length)}
        </span>
      </div>
      {!isReady.value && problem.value && (
        <Problem title="Functions cannot be listed" text={problem.value}>
          <p>
            {namespace === undefined
              ? "You may not see all namespaces: choose the one that you work in."
              : "Choose a namespace that you may see, or ask its administrator for access."}
          </p>
        </Problem>
      )}
      {hasNone && <NoFunctions namespace={namespace} forNew={forNew} />}
      {isReady.value && !hasNone && shown.length === 0 && (
        <Empty
          title={`No Function matches ${text.trim()}`}
          actions={
            <button type="button" onClick={() => setQuery({ q: "" })}>
              Show all
            </button>
          }
        >
          Names, namespaces, states, runtimes and kinds of source are searched, for each word.
        </Empty>
      )}
      {shown.length > 0 && (
        <VirtualList
          label="Functions"
          items={shown}
          rowHeight={isPhone ? rowHeights.phone : rowHeights.desk}
          head={!isPhone && <Head order={order} />}
          row={(fn, { style }) => (
            <Row key={fn.metadata.uid} fn={fn} style={style} isPhone={isPhone} />
          )}
        />
      )}
    </Frame>
  );
}

/** By what the list can be sorted; the second click turns the order round. */
const columns = ["Name", "State", "Namespace", "Runtime", "Source", "Pods", "", "Age", ""];

function Head({ order }: { order: string }) {
  const by = order.replace("-", "");
  return (
    <div class="vhead cells fn-cells" role="group" aria-label="Sort by">
      {columns.map((title, at) => {
        const key = title.toLowerCase();
        if (key === "") return <span key={at}>{at === 6 && "Deployed"}</span>;
        const isChosen = key === (by || "name");
        const isDown = isChosen && order.startsWith("-");
        const next = isChosen && !isDown ? `-${key}` : key;
        return (
          <button
            key={key}
            type="button"
            class="plain sort"
            aria-pressed={isChosen}
            title={`Sort by ${key}`}
            onClick={() => setQuery({ sort: next === "name" ? undefined : next })}
          >
            {title}
            {isChosen && <span aria-hidden="true">{isDown ? " ↓" : " ↑"}</span>}
            {isDown && <span class="sr">, descending</span>}
          </button>
        );
      })}
    </div>
  );
}

function Row({
  fn,
  style,
  isPhone,
}: {
  fn: Function;
  style: { top: string; height: string };
  isPhone: boolean;
}) {
  const { name = "", namespace = "", creationTimestamp } = fn.metadata;
  const { word, tone, note } = stateOf(fn);
  const title = note ? `${word}: ${note}` : word;
  const url = urlOf(fn);
  return (
    <>
      <a class="vrow" style={style} href={paths.fn(namespace, name)}>
        <span class="cells fn-cells">
          <span class="name clip">
            {name}
            {draftOf(fn).value && <span class="muted light"> changes not applied</span>}
          </span>
          <span class="clip" title={title}>
            <State tone={tone}>{word}</State>
          </span>
          <span class="muted clip">{namespace}</span>
          {!isPhone && (
            <>
              <span class="clip">{fn.spec.runtime}</span>
              <span class="muted clip">{sourceOf(fn)}</span>
              <span>{fn.status?.replicas ?? 0}</span>
              <span class="muted">
                <Deployed fn={fn} />
              </span>
              <span class="muted">
                <Age time={creationTimestamp} />
              </span>
              <span />
            </>
          )}
          {isPhone && <span class="muted">{fn.spec.runtime}</span>}
        </span>
      </a>
      {!isPhone && url !== undefined && (
        <a
          class="vurl"
          style={{ top: style.top }}
          href={url}
          target="_blank"
          rel="noreferrer"
          title={url}
          aria-label={`Open the URL of ${name}`}
        >
          <Icon name="open" />
        </a>
      )}
    </>
  );
}

/** When it was deployed last. */
function Deployed({ fn }: { fn: Function }) {
  const time = useLastDeployment(fn);
  return time === "" ? <>–</> : <Age time={time} />;
}

function NoFunctions({
  namespace,
  forNew,
}: {
  namespace: string | undefined;
  /** Where one may be created. */
  forNew: string | undefined;
}) {
  return (
    <Empty
      title={namespace === undefined ? "No Functions yet" : `No Functions in ${namespace} yet`}
      actions={
        forNew !== undefined && (
          <a class="button primary" href={paths.create(forNew)}>
            <Icon name="plus" />
            Create a Function
          </a>
        )
      }
    >
      A Function is a few lines of JavaScript, TypeScript or Python that answer HTTP requests. You
      write the code; Spry builds an image, runs it, and gives it a URL.
    </Empty>
  );
}

function matching(all: readonly Function[], text: string): Function[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? [...all] : all.filter((fn) => hasWords(fn, words));
  return found.sort((a, b) => compare(keyOf(a), keyOf(b)));
}

/** The time that an age is counted from, the newest first: as the ages themselves. */
const valueOf: Record<string, (fn: Function) => string | number> = {
  name: keyOf,
  state: (fn) => stateOf(fn).word,
  namespace: ({ metadata }) => metadata.namespace ?? "",
  runtime: ({ spec }) => spec.runtime ?? "",
  source: sourceOf,
  pods: ({ status }) => status?.replicas ?? 0,
  age: ({ metadata }) => -Date.parse(metadata.creationTimestamp ?? "") || 0,
};

/** Of those with the same value, the names decide. */
function inOrder(found: Function[], order: string): Function[] {
  const value = valueOf[order.replace("-", "")];
  if (!value) return found;
  const turn = order.startsWith("-") ? -1 : 1;
  const values = new Map(found.map((fn) => [fn, value(fn)]));
  const difference = (a: string | number, b: string | number) =>
    typeof a === "number" && typeof b === "number" ? a - b : compare(String(a), String(b));
  return found.sort((a, b) => turn * difference(values.get(a) ?? "", values.get(b) ?? ""));
}

function hasWords(fn: Function, words: string[]): boolean {
  const { name, namespace } = fn.metadata;
  const all =
    `${name} ${namespace} ${fn.spec.runtime} ${stateOf(fn).word} ${sourceOf(fn)}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

function keyOf({ metadata }: Function): string {
  return `${metadata.name}/${metadata.namespace}`;
}
/** `fn-2` before `fn-10`. */
const { compare } = new Intl.Collator("en", { numeric: true });

const countText = (shown: number, all: number): string =>
  shown === all ? `${all} ${all === 1 ? "Function" : "Functions"}` : `${shown} of ${all}`;
