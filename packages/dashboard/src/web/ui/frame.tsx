import { type ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { connectionState } from "../api/tab-connection.ts";
import { paths, segments } from "../router.ts";
import { info } from "../state/info.ts";
import { Icon } from "./icon.tsx";
import { useFocusOnArrival } from "./keep-focus.ts";
import { askToLogOut } from "./log-out.tsx";
import { openPalette } from "./palette.tsx";
import { sections } from "./sections.ts";
import { theme, toggleTheme } from "./theme.ts";

/** What surrounds every view: navigation, the place of the view, and whether what is shown is current. */
export function Frame({
  title,
  crumbs,
  actions,
  isFixed = false,
  children,
}: {
  /** The title of the view, also for the browser's tab. */
  title: string;
  crumbs?: ComponentChildren;
  actions?: ComponentChildren;
  /** The view scrolls by itself. */
  isFixed?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Spry`;
  }, [title]);
  const [first = "functions"] = segments.value;
  useFocusOnArrival(segments.value.join("/"));
  const dark = theme.value === "dark";
  return (
    <div class="app">
      <button type="button" class="skip" onClick={() => document.querySelector("main")?.focus()}>
        Skip to the content
      </button>
      <nav class="sidebar" aria-label="Sections">
        <a class="brand" href={paths.functions()}>
          <img src="/assets/icon.svg" alt="" />
          Spry
        </a>
        {sections.map(({ path, title, icon, isWide }) => (
          <a
            key={path}
            href={path}
            class={`place${isWide ? " not-phone" : ""}`}
            aria-current={`/${first}` === path ? "page" : undefined}
          >
            <Icon name={icon} />
            {title}
          </a>
        ))}
        <div class="foot">Spry {info.value?.version}</div>
      </nav>
      <div class="page">
        <header class="topbar">
          <div class="crumbs grow">{crumbs ?? <h1 class="clip">{title}</h1>}</div>
          {actions}
          <button type="button" class="plain" title="Commands and Functions" onClick={openPalette}>
            <Icon name="search" />
            <span class="sr">Commands</span>
            <kbd class="not-phone">Ctrl K</kbd>
          </button>
          <button
            type="button"
            class="plain"
            aria-label={dark ? "Light theme" : "Dark theme"}
            title={dark ? "Light theme" : "Dark theme"}
            onClick={toggleTheme}
          >
            <Icon name={dark ? "sun" : "moon"} />
          </button>
          <button
            type="button"
            class="plain"
            aria-label="Log out"
            title="Log out"
            onClick={askToLogOut}
          >
            <Icon name="out" />
          </button>
        </header>
        {connectionState.value === "lost" && (
          <div class="banner" role="status">
            <Icon name="alert" />
            The connection was lost: what is shown may be out of date. Connecting again …
          </div>
        )}
        <main class={isFixed ? "fixed" : ""} tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}
