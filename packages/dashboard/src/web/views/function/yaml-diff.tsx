import { type Desired } from "../../state/changes.ts";
import { yamlOf } from "../../state/yaml.ts";
import { Diff } from "../../ui/diff.tsx";

/** What changes of a Function, as YAML. */
export function YamlDiff({
  label,
  target,
  before,
  after,
}: {
  label: string;
  target: { namespace: string; name: string };
  before: Desired;
  after: Desired;
}) {
  return <Diff label={label} before={yamlOf(target, before)} after={yamlOf(target, after)} />;
}
