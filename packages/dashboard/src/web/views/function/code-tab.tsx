import { useRef } from "preact/hooks";
import { defaultRuntime, findRuntime } from "@spry/function/browser";
import type { Editor } from "../../editor/code-editor.ts";
import { query } from "../../router.ts";
import { draftOf, edit } from "../../state/drafts.ts";
import { problemOf } from "../../state/function-state.ts";
import { placeIn } from "../../state/place-in-code.ts";
import { may } from "../../state/rights.ts";
import { languageOf } from "../../state/code-language.ts";
import { Code, FileTitle } from "../../ui/code.tsx";
import { UnfinishedYaml } from "./unfinished-yaml.tsx";
import { type TabProps } from "./tab-props.ts";

/** The source and its dependencies, or where they are: in a Git repository or a directory. */
export function CodeTab({ fn }: TabProps) {
  const { namespace, name } = fn.metadata;
  const draft = draftOf(fn);
  const spec = draft.value?.edited.spec ?? fn.spec;
  const { inline } = spec.source;
  const line = Number(query.value.get("line"));
  const shownLine = useRef(0);
  if (!inline) return <OtherSource fn={fn} />;
  const isUnfinished = draft.value?.yaml !== undefined;
  const readOnly = isUnfinished || !may(namespace ?? "", "patch", "functions");
  const runtime = spec.runtime ?? defaultRuntime;
  const { dependencyFile = "package.json", handlerFile = "handler.js" } =
    findRuntime(runtime) ?? {};
  const change = (part: Partial<typeof inline>) =>
    edit(fn, (edited) => ({
      ...edited,
      spec: {
        ...edited.spec,
        source: { inline: { ...(edited.spec.source.inline ?? inline), ...part } },
      },
    }));
  const failure = problemOf(fn);
  const place = failure && placeIn(failure.message);
  // A failure is about what was applied, not about what has been typed since.
  const problems = () =>
    place && failure && !draft.value
      ? [{ line: place.line, message: failure.message.split("\n")[0] ?? "" }]
      : [];
  const onEditor = (editor: Editor) => {
    if (line > 0 && shownLine.current !== line) editor.focusLine(line);
    shownLine.current = line;
  };
  return (
    <div class="stack">
      {isUnfinished && <UnfinishedYaml fn={fn} />}
      <FileTitle file={handlerFile} language={languageOf(runtime, inline.source)} />
      <Code
        key={`source ${line}`}
        tall
        label={`Source of ${name}`}
        language={languageOf(runtime, inline.source)}
        text={inline.source}
        readOnly={readOnly}
        onChange={(source) => change({ source })}
        problems={problems}
        onEditor={onEditor}
      />
      <h2>
        {dependencyFile} <span class="muted light">packages that the code uses, if any</span>
      </h2>
      <Code
        label={`Dependencies of ${name}`}
        language={runtime.startsWith("python") ? "text" : "json"}
        text={inline.dependencies ?? ""}
        readOnly={readOnly}
        onChange={(dependencies) => change({ dependencies })}
      />
    </div>
  );
}

function OtherSource({ fn }: Pick<TabProps, "fn">) {
  const { gitRepository, image } = fn.spec.source;
  const { status } = fn;
  if (!gitRepository) {
    return (
      <div class="panel">
        <div class="body stack">
          <p>
            The source is a directory that <code>spry deploy</code> has sent. Change it there, and
            deploy it again.
          </p>
          <dl class="pairs">
            <dt>Files</dt>
            <dd class="mono">{image}</dd>
          </dl>
        </div>
      </div>
    );
  }
  return (
    <div class="panel">
      <div class="head">
        <h2>Git repository</h2>
      </div>
      <dl class="body pairs">
        <dt>URL</dt>
        <dd class="mono">{gitRepository.url}</dd>
        <dt>Branch, tag or commit</dt>
        <dd class="mono">{gitRepository.reference}</dd>
        <dt>Directory</dt>
        <dd class="mono">{gitRepository.baseDir || "/"}</dd>
        <dt>Last commit</dt>
        <dd class="mono">{status?.commit ?? "not fetched yet"}</dd>
        <dt>Login</dt>
        <dd>
          {gitRepository.auth
            ? `${gitRepository.auth.type}, Secret ${gitRepository.auth.secretName}`
            : "none"}
        </dd>
      </dl>
    </div>
  );
}
