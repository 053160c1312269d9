import { useRef } from "preact/hooks";
import { desiredOf } from "../../state/changes.ts";
import { draftOf, edit } from "../../state/drafts.ts";
import { may } from "../../state/rights.ts";
import { readYaml, yamlOf } from "../../state/yaml.ts";
import { Code } from "../../ui/code.tsx";
import { YamlProblem } from "../form/yaml-problem.tsx";
import { type TabProps } from "./tab-props.ts";

/** The Function as YAML. The other tabs show the same object: what is typed in one appears in the others. */
export function YamlTab({ fn }: TabProps) {
  const { namespace = "", name = "" } = fn.metadata;
  const draft = draftOf(fn).value;
  const desired = draft?.edited ?? desiredOf(fn);
  // While the user types, the text keeps its order, comments and blank lines.
  const typed = useRef<{ text: string; means: string }>(undefined);
  const means = JSON.stringify(desired);
  const text =
    draft?.yaml ??
    (typed.current?.means === means ? typed.current.text : yamlOf({ name, namespace }, desired));
  const change = (changed: string) => {
    if (changed === text) return;
    const read = readYaml(changed, { name, namespace });
    if ("problem" in read) return edit(fn, (edited) => edited, changed);
    typed.current = { text: changed, means: JSON.stringify(read.desired) };
    edit(fn, () => read.desired);
  };
  const problems = (current: string) => {
    const read = readYaml(current, { name, namespace });
    return "problem" in read ? [{ line: read.line, message: read.problem }] : [];
  };
  const [wrong] = draft?.yaml === undefined ? [] : problems(draft.yaml);
  return (
    <div class="stack">
      {wrong && <YamlProblem {...wrong} />}
      <Code
        tall
        label={`YAML of ${name}`}
        language="yaml"
        text={text}
        readOnly={!may(namespace, "patch", "functions")}
        onChange={change}
        problems={problems}
      />
    </div>
  );
}
