import { useState } from "preact/hooks";
import { type FunctionSpec, validateFunction } from "@spry/function/browser";
import { desiredOf } from "../../state/changes.ts";
import { draftOf, edit } from "../../state/drafts.ts";
import { may } from "../../state/rights.ts";
import { EnvFields } from "../form/env-fields.tsx";
import { problemAt } from "../form/form.ts";
import { GitFields } from "../form/git-fields.tsx";
import { LabelFields } from "../form/label-fields.tsx";
import { RuntimeField } from "../form/runtime-field.tsx";
import { ScheduleFields } from "../form/schedule-fields.tsx";
import { ScaleFields } from "../form/scale-fields.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { UnfinishedYaml } from "./unfinished-yaml.tsx";
import { type TabProps } from "./tab-props.ts";

/** Everything about a Function except its code, as a form. The YAML tab shows the same object. */
export function SettingsTab({ fn, pods }: TabProps) {
  const { namespace = "" } = fn.metadata;
  const [isDeleting, setDeleting] = useState(false);
  const draft = draftOf(fn).value;
  const { spec, metadata } = draft?.edited ?? desiredOf(fn);
  const onChange = (next: FunctionSpec) => edit(fn, (edited) => ({ ...edited, spec: next }));
  const problems = validateFunction({ ...fn, spec });
  const isUnfinished = draft?.yaml !== undefined;
  const readOnly = isUnfinished || !may(namespace, "patch", "functions");
  const form = { namespace, spec, onChange, problems, readOnly };
  return (
    <div class="stack loose narrow">
      {isUnfinished && <UnfinishedYaml fn={fn} />}
      <section class="panel">
        <div class="body stack">
          <RuntimeField {...form} />
        </div>
      </section>
      {spec.source.gitRepository && (
        <section class="panel">
          <div class="body">
            <GitFields {...form} />
          </div>
        </section>
      )}
      <section class="panel">
        <div class="body">
          <EnvFields {...form} />
        </div>
      </section>
      <section class="panel">
        <div class="body">
          <ScaleFields {...form} />
        </div>
      </section>
      <section class="panel">
        <div class="body">
          <ScheduleFields {...form} />
        </div>
      </section>
      <section class="panel">
        <div class="body stack loose">
          <LabelFields
            title="Labels of the Function"
            what="label"
            values={metadata.labels}
            onChange={(labels) =>
              edit(fn, (edited) => ({ ...edited, metadata: { ...edited.metadata, labels } }))
            }
            readOnly={readOnly}
          />
          <LabelFields
            title="Labels of its Pods"
            what="Pod label"
            values={spec.labels ?? {}}
            onChange={(values) => {
              const { labels: _labels, ...rest } = spec;
              onChange(Object.keys(values).length > 0 ? { ...spec, labels: values } : rest);
            }}
            error={problemAt(problems, "spec.labels")}
            readOnly={readOnly}
          />
        </div>
      </section>
      {may(namespace, "delete", "functions") && (
        <div>
          <button type="button" class="danger" onClick={() => setDeleting(true)}>
            Delete this Function …
          </button>
        </div>
      )}
      {isDeleting && <DeleteDialog fn={fn} pods={pods} onClose={() => setDeleting(false)} />}
    </div>
  );
}
