import { useRef, useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { type Tone } from "../state/function-state.ts";
import { may } from "../state/rights.ts";
import { declareTyped, isRead, keepTyped, typedAs, unstored } from "../state/typed.ts";
import { otherFields, usualFields } from "../state/settings-fields.ts";
import { readSettings, type Serverless, serverlesses, settingsYaml } from "../state/serverless.ts";
import { Empty, Problem, State } from "../ui/basics.tsx";
import { Code } from "../ui/code.tsx";
import { Frame } from "../ui/frame.tsx";
import { useApplyKey } from "../ui/use-apply-key.ts";
import { toast } from "../ui/toasts.tsx";
import { SettingsForm } from "./form/settings-form.tsx";

const tones: Record<string, Tone> = { Ready: "good", Warning: "warn", Error: "bad" };
const settingWords = [...usualFields, ...otherFields].map(({ path, hint }) => ({
  label: path.split(".")[0] ?? "",
  info: hint,
}));
/** Where the object is looked for, and its usual name. */
const usual = { namespace: "kyma-system", name: "default" };

/** The settings of the whole platform: the `Serverless` object and its state. */
export function SettingsView() {
  const { items, isReady, problem } = useLive(serverlesses);
  const name = settingsName(usual);
  const [hasBegun, setBegun] = useState(false);
  // What was typed before a reload is shown again.
  const isBeginning = hasBegun || typedAs(name) !== undefined;
  const isMissing = isReady.value && isRead.value && items.value.length === 0;
  return (
    <Frame title="Settings">
      <div class="stack loose narrow">
        {problem.value && !isReady.value && (
          <Problem
            tone="warn"
            title="You may not see the platform’s settings"
            text={problem.value}
          />
        )}
        {isMissing && !isBeginning && (
          <Empty
            title="Everything is at its default"
            actions={
              may(usual.namespace, "create", serverlesses.plural, serverlesses.group) && (
                <button type="button" class="primary" onClick={() => setBegun(true)}>
                  Change settings
                </button>
              )
            }
          >
            <p>
              Presets, build limits, registries and Git are configured by one object of the kind{" "}
              <code>Serverless</code> in the namespace <code>kyma-system</code>. There is none, so
              the defaults apply.
            </p>
          </Empty>
        )}
        {isMissing && isBeginning && (
          <Settings
            serverless={{ metadata: usual, spec: {} }}
            onCancel={() => {
              keepTyped(name, undefined);
              setBegun(false);
            }}
          />
        )}
        {isRead.value &&
          items.value.map((each) => <Settings key={each.metadata.uid} serverless={each} />)}
      </div>
    </Frame>
  );
}

interface Draft {
  text: string;
  /** What it was when the user began to type. */
  base: string;
}

const settingsName = ({ namespace = "", name = "" }: { namespace?: string; name?: string }) =>
  `settings.${namespace}/${name}`;
declareTyped("settings.", { "text!": "text", "base!": "text" });

/** The fields of another spec than the one that is typed, where both are readable. */
const specOf = (text: string): object => {
  const read = readSettings(text);
  return "spec" in read ? read.spec : {};
};

/** One object, with its conditions. What is typed stays until it is applied or discarded. */
function Settings({
  serverless,
  onCancel,
}: {
  serverless: Serverless;
  /** Of one that does not exist yet. */
  onCancel?: () => void;
}) {
  const isNew = onCancel !== undefined;
  const { metadata, status } = serverless;
  const { namespace = "", name = "" } = metadata;
  const typedName = settingsName(metadata);
  const draft = typedAs<Draft>(typedName);
  const button = useRef<HTMLButtonElement>(null);
  useApplyKey(button);
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [isOpen, setOpen] = useState(false);
  const current = settingsYaml(serverless);
  const keep = (next: Draft | undefined) => keepTyped(typedName, next);
  const text = draft?.text ?? current;
  const read = readSettings(text);
  const change = (text: string) =>
    keep(text === current ? undefined : { text, base: draft?.base ?? current });
  const apply = async () => {
    if (!("spec" in read)) return;
    setBusy(true);
    setFailure("");
    const { apiVersion, kind, spec: _spec, ...rest } = serverless;
    const desired = { ...rest, ...(apiVersion && { apiVersion }), ...(kind && { kind }) };
    try {
      const { mergeThreeWays } = await import("../state/merge.ts");
      // What others have changed since, in other fields, stays.
      const spec = draft
        ? mergeThreeWays<object>(specOf(draft.base), read.spec, serverless.spec ?? {}).merged
        : read.spec;
      // With the version that is shown: what is changed in this moment is not overwritten.
      if (isNew) await client.create(serverlesses, { ...desired, spec });
      else await client.update(serverlesses, { ...desired, spec });
      keep(undefined);
      toast("good", "The settings are applied.");
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const isEditable = may(namespace, "update", serverlesses.plural, serverlesses.group);
  const isChanged = draft !== undefined && draft.text !== current;
  return (
    <section class="panel">
      <div class="head">
        <h2>
          {namespace}/{name}
        </h2>
        {!isNew && (
          <State tone={tones[status?.state ?? ""] ?? "busy"}>
            {status?.state ?? "not read yet"}
          </State>
        )}
      </div>
      <div class="body stack">
        {(status?.conditions ?? []).map((each) => (
          <div key={each.type} class="row">
            <State tone={each.status === "True" ? "good" : "bad"}>{each.type}</State>
            <span class="muted">{each.message}</span>
          </div>
        ))}
        {"spec" in read ? (
          <SettingsForm
            spec={read.spec}
            inEffect={status ?? {}}
            readOnly={!isEditable}
            onChange={(spec) => change(settingsYaml({ spec }))}
          />
        ) : (
          <Problem
            tone="warn"
            title="The YAML cannot be read, so the form is not shown"
            text={`Line ${read.line}: ${read.problem}`}
          />
        )}
        <details
          open={isOpen || "problem" in read}
          onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
        >
          <summary>All settings, as YAML</summary>
          <Code
            readOnly={!isEditable}
            label={`Settings of ${name}`}
            language="yaml"
            text={text}
            words={settingWords}
            onChange={change}
            problems={(text) => {
              const found = readSettings(text);
              return "problem" in found ? [{ line: found.line, message: found.problem }] : [];
            }}
          />
        </details>
        {isChanged && draft.base !== current && (
          <Problem
            tone="warn"
            title="Another user has changed these settings meanwhile"
            text={current}
          >
            <p>
              These are the current settings. Apply keeps both changes, and yours where both have
              changed the same; Discard shows theirs.
            </p>
          </Problem>
        )}
        {failure && <Problem title="The settings were not applied" text={failure} />}
        {isEditable ? (
          <div class="row">
            <button
              ref={button}
              type="button"
              class="primary"
              disabled={isBusy || "problem" in read || !(isChanged || isNew)}
              onClick={() => void apply()}
            >
              Apply
            </button>
            {isNew ? (
              <button type="button" onClick={onCancel}>
                Cancel
              </button>
            ) : (
              <button type="button" disabled={!isChanged} onClick={() => keep(undefined)}>
                Discard
              </button>
            )}
            <span class="muted">
              {isChanged
                ? unstored.value.has(typedName)
                  ? "Not applied yet; this browser has no room to store it."
                  : "Not applied yet."
                : "Settings that are not set have their defaults."}
            </span>
          </div>
        ) : (
          <p class="muted">You may see these settings, but not change them.</p>
        )}
      </div>
    </section>
  );
}
