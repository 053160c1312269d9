import { type CompletionContext, snippetCompletion } from "@codemirror/autocomplete";
import { EditorState, type Extension } from "@codemirror/state";

/** What handlers are made of (docs/runtime-contract.md), as completions next to those of the language. */
const completions = {
  nodejs: [
    snippetCompletion("module.exports = {\n  main(event, context) {\n    ${}\n  },\n};", {
      label: "main",
      detail: "handler",
      info: "event and context in, a value or a promise out",
      type: "function",
    }),
    snippetCompletion(
      "export default {\n  async fetch(request) {\n    return Response.json({ ${} });\n  },\n};",
      {
        label: "fetch",
        detail: "handler",
        info: "the web's Request in, a Response out",
        type: "function",
      },
    ),
    { label: "event.data", type: "property", info: "the request's body, parsed" },
    { label: "event.extensions.request", type: "property", info: "the HTTP request" },
    { label: "event.extensions.response", type: "property", info: "the HTTP response" },
    { label: "event.tracer", type: "property", info: "OpenTelemetry's tracer" },
    {
      label: "event.emitCloudEvent",
      type: "method",
      info: "(type, source, data) publishes an event",
    },
    { label: 'context["function-name"]', type: "property" },
    { label: "context.namespace", type: "property" },
    { label: "process.env", type: "property", info: "the variables of the Function" },
  ],
  python: [
    snippetCompletion('def main(event, context):\n    return ${""}', {
      label: "main",
      detail: "handler",
      type: "function",
    }),
    { label: 'event["data"]', type: "property", info: "the request's body, parsed" },
    { label: 'event["extensions"]["request"]', type: "property", info: "the HTTP request" },
    { label: "event.emitCloudEvent", type: "method" },
    { label: 'context["function-name"]', type: "property" },
    { label: "os.environ", type: "property", info: "the variables of the Function" },
  ],
};

export function handlerCompletions(language: keyof typeof completions): Extension {
  const source = (context: CompletionContext) => {
    const word = context.matchBefore(/[\w.[\]"]+/);
    if (!word && !context.explicit) return null;
    return {
      from: word?.from ?? context.pos,
      options: completions[language],
      validFor: /^[\w.[\]"]*$/,
    };
  };
  return EditorState.languageData.of(() => [{ autocomplete: source }]);
}

/** Fields at the beginning of a line of YAML. */
export function fieldCompletions(words: readonly { label: string; info: string }[]): Extension {
  const options = words.map((each) => ({ ...each, apply: `${each.label}: `, type: "property" }));
  const source = (context: CompletionContext) => {
    const line = context.state.doc.lineAt(context.pos);
    const word = context.matchBefore(/\w*/);
    if (!word || word.from !== line.from || (word.text === "" && !context.explicit)) return null;
    return { from: word.from, options, validFor: /^\w*$/ };
  };
  return EditorState.languageData.of(() => [{ autocomplete: source }]);
}
