/** The languages of the editor, and where a text is wrong in one. Loaded with the first editor, or before code is applied. */
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { python } from "@codemirror/lang-python";
import { yaml } from "@codemirror/lang-yaml";
import { type LanguageSupport } from "@codemirror/language";

export type EditorLanguage = "javascript" | "typescript" | "python" | "json" | "yaml" | "text";

export function supportOf(language: EditorLanguage): LanguageSupport | undefined {
  switch (language) {
    case "javascript":
      return javascript();
    case "typescript":
      return javascript({ typescript: true });
    case "python":
      return python();
    case "json":
      return json();
    case "yaml":
      return yaml();
    case "text":
      return undefined;
  }
}

/** The first line (from 1) that the editor marks red; undefined where none is. */
export function firstWrongLine(text: string, language: EditorLanguage): number | undefined {
  const parser = supportOf(language)?.language.parser;
  if (!parser || text.trim() === "") return undefined;
  let at: number | undefined;
  parser.parse(text).iterate({
    enter: ({ type, from }) => {
      if (type.isError) at ??= from;
    },
  });
  return at === undefined ? undefined : text.slice(0, at).split("\n").length;
}
