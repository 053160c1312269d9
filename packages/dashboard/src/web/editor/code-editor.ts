/** CodeMirror, as the page uses it. Loaded when the first editor is shown. */
import {
  autocompletion,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import {
  bracketMatching,
  ensureSyntaxTree,
  foldGutter,
  foldKeymap,
  HighlightStyle,
  indentOnInput,
  syntaxHighlighting,
} from "@codemirror/language";
import { type Diagnostic, linter, lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import {
  Annotation,
  Compartment,
  EditorState,
  type Extension,
  Transaction,
} from "@codemirror/state";
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { withPlainEnds } from "../state/line-ends.ts";
import { type EditorLanguage, supportOf } from "./languages.ts";
import { fieldCompletions, handlerCompletions } from "./completions.ts";

/** Something wrong at a line (from 1). */
export interface LineProblem {
  line: number;
  message: string;
}

export interface EditorOptions {
  text: string;
  language: EditorLanguage;
  /** The editor's name for screen readers. */
  label: string;
  readOnly: boolean;
  /** Fields that can be written, offered with what they are for. */
  words?: readonly { label: string; info: string }[] | undefined;
  onChange(text: string): void;
  /** Problems that the language's own syntax does not show. */
  problems?: (this: void, text: string) => LineProblem[];
}

export interface Editor {
  /** Without a call of `onChange`. */
  setText(text: string): void;
  setLanguage(language: EditorLanguage): void;
  focusLine(line: number): void;
  /** Focuses the editor with this selection, in characters from the beginning. */
  focusAt(from: number, to: number): void;
  destroy(): void;
}

/** Of a change that the page makes itself. */
const isFromPage = Annotation.define<boolean>();

export function createEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const language = new Compartment();
  // Below a shadow root its rules are style sheets created by script; in a document they would be inline, which the page's
  // policy refuses.
  const root = parent.shadowRoot ?? parent.attachShadow({ mode: "open" });
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        lineNumbers(),
        foldGutter(),
        highlightSpecialChars(),
        history(),
        drawSelection(),
        EditorState.tabSize.of(2),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        autocompletion(),
        highlightActiveLine(),
        highlightActiveLineGutter(),
        highlightSelectionMatches(),
        search({ top: true }),
        lintGutter(),
        linter((view) => problemsOf(view, options.problems), { delay: 300 }),
        syntaxHighlighting(colours),
        theme,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        EditorState.readOnly.of(options.readOnly),
        EditorView.editable.of(!options.readOnly),
        // Escape, then Tab, leaves the editor without a mouse.
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...searchKeymap,
          ...historyKeymap,
          ...foldKeymap,
          ...completionKeymap,
          ...lintKeymap,
          indentWithTab,
        ]),
        language.of(languageOf(options.language)),
        options.words ? fieldCompletions(options.words) : [],
        EditorView.updateListener.of((update) => {
          // What the page itself has set is not reported: the text of an earlier rendering would come back as if it had been typed.
          const isTyped = update.transactions.some(
            (each) => each.docChanged && !each.annotation(isFromPage),
          );
          if (isTyped) options.onChange(update.state.doc.toString());
        }),
      ],
    }),
  });
  return {
    setText(text) {
      const changes = changeOf(view.state.doc.toString(), withPlainEnds(text));
      // Undo takes back what was typed here: what others have changed is not brought back by it.
      if (changes)
        view.dispatch({
          changes,
          annotations: [isFromPage.of(true), Transaction.addToHistory.of(false)],
        });
    },
    setLanguage: (next) => view.dispatch({ effects: language.reconfigure(languageOf(next)) }),
    focusLine(line) {
      const { doc } = view.state;
      const { from } = doc.line(Math.min(Math.max(line, 1), doc.lines));
      view.dispatch({
        selection: { anchor: from },
        effects: EditorView.scrollIntoView(from, { y: "center" }),
      });
      view.focus();
    },
    focusAt(from, to) {
      const { length } = view.state.doc;
      view.dispatch({ selection: { anchor: Math.min(from, length), head: Math.min(to, length) } });
      view.focus();
    },
    destroy: () => view.destroy(),
  };
}

/** The part that differs, so that the cursor and what can be undone stay where they are; undefined where nothing does. */
function changeOf(before: string, after: string) {
  if (before === after) return undefined;
  const least = Math.min(before.length, after.length);
  let head = 0;
  while (head < least && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < least - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  return { from: head, to: before.length - tail, insert: after.slice(head, after.length - tail) };
}

function languageOf(language: EditorLanguage): Extension {
  const support = supportOf(language) ?? [];
  if (language === "javascript" || language === "typescript")
    return [support, handlerCompletions("nodejs")];
  return language === "python" ? [support, handlerCompletions("python")] : support;
}

const maxProblems = 50;
const maxParseMs = 500;

/** The parser's errors, and the problems that the caller adds. */
function problemsOf(view: EditorView, more?: (text: string) => LineProblem[]): Diagnostic[] {
  const { state } = view;
  const found: Diagnostic[] = [];
  // In a tree that is not complete yet, the end is an error, too. An empty text has no error.
  const isEmpty = state.doc.toString().trim() === "";
  const tree = isEmpty ? null : ensureSyntaxTree(state, state.doc.length, maxParseMs);
  tree?.iterate({
    enter: ({ type, from, to }) => {
      if (!type.isError || found.length >= maxProblems) return;
      const end = Math.min(Math.max(to, from + 1), state.doc.length);
      found.push({
        from: Math.min(from, end),
        to: end,
        severity: "error",
        message: "syntax error",
      });
    },
  });
  for (const { line, message } of more?.(state.doc.toString()) ?? []) {
    const { from, to } = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
    found.push({ from, to, severity: "error", message });
  }
  return found;
}

const colours = HighlightStyle.define([
  {
    tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self],
    color: "var(--code-keyword)",
  },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  {
    tag: [tags.function(tags.variableName), tags.propertyName, tags.typeName, tags.className],
    color: "var(--code-name)",
  },
  { tag: tags.invalid, color: "var(--code-invalid)" },
]);

const theme = EditorView.theme({
  "&": {
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    fontSize: "13px",
    maxHeight: "62vh",
    minHeight: "var(--editor-min)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": {
    backgroundColor: "color-mix(in srgb, var(--accent) 6%, transparent)",
  },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground":
    {
      backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent)",
    },
  ".cm-selectionMatch": { backgroundColor: "color-mix(in srgb, var(--warn) 22%, transparent)" },
  ".cm-matchingBracket": {
    backgroundColor: "color-mix(in srgb, var(--accent) 24%, transparent) !important",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    border: "1px solid var(--line)",
    color: "var(--text)",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": {
    backgroundColor: "var(--accent)",
    color: "var(--accent-text)",
  },
  ".cm-panels": { backgroundColor: "var(--raised)", color: "var(--text)" },
  ".cm-foldPlaceholder": {
    backgroundColor: "var(--idle-soft)",
    border: "none",
    color: "var(--muted)",
  },
});
