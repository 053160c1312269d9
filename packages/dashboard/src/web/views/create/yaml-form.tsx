import { useState } from "preact/hooks";
import { readYaml, yamlOf } from "../../state/yaml.ts";
import { Code } from "../../ui/code.tsx";
import { YamlProblem } from "../form/yaml-problem.tsx";
import { type NewFunctionProps } from "./new-function-props.ts";

/** The Function of the form, as YAML. */
export function YamlForm({ made, change }: NewFunctionProps) {
  const { name, namespace, desired } = made;
  const [typed, setTyped] = useState<string>();
  const text = made.yaml ?? typed ?? yamlOf({ name, namespace }, desired);
  const problems = (current: string) => {
    const read = readYaml(current);
    return "problem" in read ? [{ line: read.line, message: read.problem }] : [];
  };
  const [wrong] = made.yaml === undefined ? [] : problems(made.yaml);
  return (
    <div class="stack">
      {wrong && <YamlProblem {...wrong} />}
      <Code
        tall
        label="YAML"
        language="yaml"
        text={text}
        onChange={(changed) => {
          setTyped(changed);
          const read = readYaml(changed);
          if ("problem" in read) return change({ yaml: changed });
          const { desired, name: named = "" } = read;
          change({ desired, name: named, namespace: read.namespace ?? namespace });
        }}
        problems={problems}
      />
    </div>
  );
}
