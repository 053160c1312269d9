import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { withEndsOf } from "../state/line-ends.ts";
import { messageOf } from "@spry/kube/browser";
import type { Editor, EditorOptions } from "../editor/code-editor.ts";
import type { EditorLanguage } from "../editor/languages.ts";

/** An editor for code. Until the editor has been loaded, a plain field with the same text. */
export function Code({
  text,
  language,
  label,
  readOnly = false,
  onChange = () => {},
  problems,
  words,
  tall = false,
  onEditor,
}: {
  text: string;
  language: EditorLanguage;
  label: string;
  readOnly?: boolean;
  onChange?: (text: string) => void;
  problems?: EditorOptions["problems"];
  words?: EditorOptions["words"];
  tall?: boolean;
  onEditor?: (editor: Editor) => void;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const plain = useRef<HTMLTextAreaElement>(null);
  const editor = useRef<Editor | undefined>(undefined);
  const latest = useRef({ text, onChange, problems });
  latest.current = { text, onChange, problems };
  /** Editors have one kind of line end: the others of the text stay what they were. */
  const typed = (changed: string) =>
    latest.current.onChange(withEndsOf(latest.current.text, changed));
  const [isLoaded, setLoaded] = useState(false);
  const [failure, setFailure] = useState("");
  useEffect(() => {
    let isGone = false;
    const show = async () => {
      const { createEditor } = await import("../editor/code-editor.ts");
      if (isGone || !ref.current) return;
      const area = plain.current;
      const isTyping = area !== null && document.activeElement === area;
      editor.current = createEditor(ref.current, {
        text: latest.current.text,
        language,
        label,
        readOnly,
        words,
        onChange: typed,
        problems: (current) => latest.current.problems?.(current) ?? [],
      });
      // A user who has begun to type in the plain field continues in the editor, at the same place.
      if (isTyping) editor.current.focusAt(area.selectionStart, area.selectionEnd);
      setLoaded(true);
      onEditor?.(editor.current);
    };
    void show().catch((error: unknown) => setFailure(messageOf(error)));
    return () => {
      isGone = true;
      editor.current?.destroy();
      editor.current = undefined;
    };
  }, [readOnly]);
  // Before the next key: after it, this would be the text without that key.
  useLayoutEffect(() => editor.current?.setText(text), [text]);
  useEffect(() => editor.current?.setLanguage(language), [language]);
  return (
    <div class={`editor${tall ? " tall" : ""}`}>
      <div ref={ref} />
      {failure && (
        <p class="hint">The editor could not be loaded ({failure}): this is a plain field.</p>
      )}
      {!isLoaded && (
        <textarea
          ref={plain}
          aria-label={label}
          value={text}
          readOnly={readOnly}
          rows={Math.min(Math.max(text.split("\n").length, 4), 24)}
          onInput={({ currentTarget }) => typed(currentTarget.value)}
        />
      )}
    </div>
  );
}

/** The name of the file. Node.js takes TypeScript, too: its types are taken out, and `handler.js` is what remains. */
export function FileTitle({ file, language }: { file: string; language: EditorLanguage }) {
  const isTyped = language === "typescript";
  return (
    <h2>
      {isTyped ? file.replace(/\.js$/, ".ts") : file}{" "}
      {isTyped && <span class="muted light">TypeScript, which runs as {file}</span>}
    </h2>
  );
}
