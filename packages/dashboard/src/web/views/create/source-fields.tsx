import { defaultRuntime, findRuntime } from "@spry/function/browser";
import { languageOf } from "../../state/code-language.ts";
import { Code, FileTitle } from "../../ui/code.tsx";
import { type FormProps } from "../form/form.ts";
import { GitFields } from "../form/git-fields.tsx";
import { RuntimeField } from "../form/runtime-field.tsx";

/** The runtime, and the code with its dependencies or its Git repository. */
export function SourceFields({ template, ...form }: FormProps & { template: string }) {
  const { spec, onChange } = form;
  const { inline, gitRepository } = spec.source;
  const runtime = spec.runtime ?? defaultRuntime;
  const { handlerFile = "handler.js", dependencyFile = "package.json" } =
    findRuntime(runtime) ?? {};
  const set = (part: Partial<NonNullable<typeof inline>>) =>
    onChange({ ...spec, source: { inline: { source: "", ...inline, ...part } } });
  return (
    <>
      <RuntimeField {...form} />
      {gitRepository && <GitFields {...form} />}
      {inline && (
        <>
          <div class="stack tight">
            <FileTitle file={handlerFile} language={languageOf(runtime, inline.source)} />
            <Code
              key={template}
              tall
              label="Source"
              language={languageOf(runtime, inline.source)}
              text={inline.source}
              onChange={(source) => set({ source })}
            />
          </div>
          <div class="stack tight">
            <h2>
              {dependencyFile} <span class="muted light">packages that the code uses, if any</span>
            </h2>
            <Code
              key={template}
              label="Dependencies"
              language={runtime.startsWith("python") ? "text" : "json"}
              text={inline.dependencies ?? ""}
              onChange={(dependencies) => set({ dependencies })}
            />
          </div>
        </>
      )}
    </>
  );
}
