import { signal } from "@preact/signals";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { functions } from "@spry/function/browser";
import { useLive } from "../api/live.ts";
import { navigate, paths, query } from "../router.ts";
import { stateOf } from "../state/function-state.ts";
import { listedFunctions } from "../state/listed-functions.ts";
import { Dialog } from "./basics.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { askToLogOut } from "./log-out.tsx";
import { sections } from "./sections.ts";
import { toggleTheme } from "./theme.ts";

const isOpen = signal<"palette" | "keys" | undefined>(undefined);
export const openPalette = (): void => {
  isOpen.value = "palette";
};

interface Command {
  title: string;
  note: string;
  icon: IconName;
  run: () => void;
}

const commands: Command[] = [
  { title: "Create a Function", note: "n", icon: "plus", run: () => navigate(paths.create()) },
  ...sections.map(({ title, path, icon, key }) => ({
    title,
    note: `g ${key}`,
    icon,
    run: () => navigate(path),
  })),
  { title: "Switch the theme", note: "", icon: "moon", run: toggleTheme },
  { title: "Keyboard shortcuts", note: "?", icon: "settings", run: () => (isOpen.value = "keys") },
  { title: "Log out", note: "", icon: "out", run: askToLogOut },
];

/** Between the keys of a sequence as they were typed: the page may be busy with drawing meanwhile. */
const sequenceMs = 1_500;
const maxShown = 12;

/** The keyboard: Ctrl-K opens the list of commands and Functions; single keys work while no field is being typed in. */
export function Palette() {
  useEffect(() => {
    let before: { key: string; time: number } | undefined;
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        isOpen.value = isOpen.value ? undefined : "palette";
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event) || isOpen.value) return;
      if (before?.key === "g" && event.timeStamp - before.time < sequenceMs) {
        const section = sections.find(({ key }) => key === event.key);
        before = undefined;
        if (section) navigate(section.path);
        return;
      }
      before = { key: event.key, time: event.timeStamp };
      if (event.key === "n") navigate(paths.create(query.value.get("ns") ?? undefined));
      else if (event.key === "?") isOpen.value = "keys";
      else if (event.key === "/") {
        event.preventDefault();
        document.querySelector<HTMLInputElement>('main input[type="search"]')?.focus();
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  if (isOpen.value === "palette") return <List />;
  return isOpen.value === "keys" ? <Keys /> : null;
}

/** Whether the key goes to a field, to the editor below its shadow root, or to a dialogue. */
function isTyping(event: KeyboardEvent): boolean {
  const [target] = event.composedPath();
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.closest("input, textarea, select, dialog") !== null;
}

const close = () => {
  isOpen.value = undefined;
};

function List() {
  const { items, isReady } = useLive(functions, { keep: listedFunctions });
  /** Enter came before the Functions did. */
  const [isAwaited, setAwaited] = useState(false);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const all = useMemo(
    () => [
      ...commands,
      ...items.value.map((fn): Command => {
        const { name = "", namespace = "" } = fn.metadata;
        const note = `${namespace} · ${stateOf(fn).word}`;
        return {
          title: name,
          note,
          icon: "function",
          run: () => navigate(paths.fn(namespace, name)),
        };
      }),
    ],
    [items.value],
  );
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = all
    .filter(({ title, note }) =>
      words.every((word) => `${title} ${note}`.toLowerCase().includes(word)),
    )
    .slice(0, maxShown);
  const chosen = Math.min(at, shown.length - 1);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, shown.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter" && shown.length === 0) setAwaited(!isReady.value);
    else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  };
  useEffect(() => {
    if (isAwaited) run(shown[0]);
  }, [isAwaited, shown.length > 0]);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  return (
    <Dialog kind="palette" title="Commands" onClose={close}>
      <div class="palette">
        <input
          autofocus
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={shown.length > 0 ? `palette-${chosen}` : undefined}
          aria-label="Commands and Functions"
          placeholder="A Function, or what to do …"
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            setAt(0);
            setAwaited(false);
          }}
          onKeyDown={onKey}
        />
        <ul id="palette-list" role="listbox" aria-label="Found" ref={list}>
          {shown.map((command, index) => (
            <li
              key={`${command.title} ${command.note}`}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === chosen}
              onMouseMove={() => setAt(index)}
              onClick={() => run(command)}
            >
              <Icon name={command.icon} />
              <span class="grow clip">{command.title}</span>
              <span class="muted nowrap">{command.note}</span>
            </li>
          ))}
          {shown.length === 0 && (
            <li class="muted" role="option" aria-selected="false">
              {isReady.value ? "Nothing found." : "Looking …"}
            </li>
          )}
        </ul>
      </div>
    </Dialog>
  );
}

const keys: [keys: string, what: string][] = [
  ["Ctrl K", "commands and Functions"],
  ["/", "search"],
  ["n", "create a Function"],
  ["↑ ↓", "move in a list; Enter opens"],
  ...sections.map(({ key, title }): [string, string] => [`g ${key}`, title]),
  ["Ctrl S", "apply the changes of a Function"],
  ["Ctrl Enter", "send the request of “Try it”"],
  ["Esc, then Tab", "leave the editor"],
  ["?", "this list"],
];

function Keys() {
  return (
    <Dialog title="Keyboard shortcuts" leave="Close" onClose={close}>
      <dl class="pairs">
        {keys.map(([name, what]) => [
          <dt key={name}>
            <kbd>{name}</kbd>
          </dt>,
          <dd key={what}>{what}</dd>,
        ])}
      </dl>
    </Dialog>
  );
}
