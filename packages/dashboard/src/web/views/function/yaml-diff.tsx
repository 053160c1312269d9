import { type Desired } from "../../state/changes.ts";
import { withPlainEnds } from "../../state/line-ends.ts";
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
  return (
    <Diff
      label={label}
      before={yamlOf(target, byLine(before))}
      after={yamlOf(target, byLine(after))}
    />
  );
}

/** A source with other line ends is a single line in YAML, of which a change shows nothing. */
function byLine({ metadata, spec }: Desired): Desired {
  const { inline } = spec.source;
  if (!inline) return { metadata, spec };
  const source = { inline: { ...inline, source: withPlainEnds(inline.source) } };
  return { metadata, spec: { ...spec, source } };
}
