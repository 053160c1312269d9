import { useState } from "preact/hooks";
import { messageOf } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import { type Tone } from "../state/function-state.ts";
import { may } from "../state/rights.ts";
import { store, stored } from "../state/tab-storage.ts";
import { readSettings, type Serverless, serverlesses, settingsYaml } from "../state/serverless.ts";
import { Empty, Problem, State } from "../ui/basics.tsx";
import { Code } from "../ui/code.tsx";
import { Frame } from "../ui/frame.tsx";
import { toast } from "../ui/toasts.tsx";

const tones: Record<string, Tone> = { Ready: "good", Warning: "warn", Error: "bad" };
/** Where the object is looked for, and its usual name. */
const usual = { namespace: "kyma-system", name: "default" };

/** The settings of the whole platform: the `Serverless` object and its state. */
export function SettingsView() {
  const { items, isReady, problem } = useLive(serverlesses);
  const [isBeginning, setBeginning] = useState(false);
  const isMissing = isReady.value && items.value.length === 0;
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
                <button type="button" class="primary" onClick={() => setBeginning(true)}>
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
        {isMissing && isBeginning && <Settings serverless={{ metadata: usual, spec: {} }} isNew />}
        {items.value.map((each) => (
          <Settings key={each.metadata.uid} serverless={each} />
        ))}
      </div>
    </Frame>
  );
}

interface Draft {
  text: string;
  /** What it was when the user began to type. */
  base: string;
}

const draftShape = { "text!": "text", "base!": "text" } as const;

/** One object, with its conditions. What is typed stays in the tab until it is applied or discarded. */
function Settings({ serverless, isNew = false }: { serverless: Serverless; isNew?: boolean }) {
  const { metadata, status } = serverless;
  const { namespace = "", name = "" } = metadata;
  const storageKey = `settings.${namespace}/${name}`;
  const [draft, setDraft] = useState(() => stored<Draft>(storageKey, draftShape));
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const current = settingsYaml(serverless);
  const keep = (next: Draft | undefined) => {
    setDraft(next);
    store(storageKey, next);
  };
  const read = readSettings(draft?.text ?? current);
  const apply = async () => {
    if (!("spec" in read)) return;
    setBusy(true);
    setFailure("");
    const { apiVersion, kind, spec: _spec, ...rest } = serverless;
    const desired = { ...rest, ...(apiVersion && { apiVersion }), ...(kind && { kind }) };
    try {
      // With the version that is shown: what another user has changed since is not overwritten.
      if (isNew) await client.create(serverlesses, { ...desired, spec: read.spec });
      else await client.update(serverlesses, { ...desired, spec: read.spec });
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
        <Code
          readOnly={!isEditable}
          label={`Settings of ${name}`}
          language="yaml"
          text={draft?.text ?? current}
          onChange={(text) =>
            keep(text === current ? undefined : { text, base: draft?.base ?? current })
          }
          problems={(text) => {
            const found = readSettings(text);
            return "problem" in found ? [{ line: found.line, message: found.problem }] : [];
          }}
        />
        {isChanged && draft.base !== current && (
          <Problem
            tone="warn"
            title="Another user has changed these settings meanwhile"
            text={current}
          >
            <p>
              These are the current settings. Apply replaces them with your text; Discard shows them
              in the editor.
            </p>
          </Problem>
        )}
        {failure && <Problem title="The settings were not applied" text={failure} />}
        {isEditable ? (
          <div class="row">
            <button
              type="button"
              class="primary"
              disabled={isBusy || "problem" in read || !(isChanged || isNew)}
              onClick={() => void apply()}
            >
              Apply
            </button>
            <button type="button" disabled={!isChanged} onClick={() => keep(undefined)}>
              Discard
            </button>
            <span class="muted">
              {isChanged ? "Not applied yet." : "Settings that are not set have their defaults."}
            </span>
          </div>
        ) : (
          <p class="muted">You may see these settings, but not change them.</p>
        )}
      </div>
    </section>
  );
}
