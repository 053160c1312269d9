import { type KubeObject, type Resource } from "@spry/kube/browser";
import { dump } from "js-yaml";
import { useLive } from "../api/live.ts";
import { type Tone } from "../state/function-state.ts";
import { Code } from "../ui/code.tsx";
import { Empty, Problem, State } from "../ui/basics.tsx";
import { Frame } from "../ui/frame.tsx";

interface Serverless extends KubeObject {
  spec?: object;
  status?: {
    state?: string;
    conditions?: { type: string; status: string; reason: string; message: string }[];
  };
}

const serverlesses: Resource<Serverless> = {
  group: "operator.kyma-project.io",
  version: "v1alpha1",
  kind: "Serverless",
  plural: "serverlesses",
  namespaced: true,
};

const tones: Record<string, Tone> = { Ready: "good", Warning: "warn", Error: "bad" };

/** The settings of the whole platform: the `Serverless` object and its state. */
export function SettingsView() {
  const { items, isReady, problem } = useLive(serverlesses);
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
        {isReady.value && items.value.length === 0 && (
          <Empty title="Everything is at its default">
            <p>
              Presets, build limits, registries and Git are configured by one object of the kind{" "}
              <code>Serverless</code> in the namespace <code>kyma-system</code>. There is none, so
              the defaults apply.
            </p>
          </Empty>
        )}
        {items.value.map(({ metadata, spec, status }) => (
          <section key={metadata.uid} class="panel">
            <div class="head">
              <h2>
                {metadata.namespace}/{metadata.name}
              </h2>
              <State tone={tones[status?.state ?? ""] ?? "busy"}>
                {status?.state ?? "not read yet"}
              </State>
            </div>
            <div class="body stack">
              {(status?.conditions ?? []).map((each) => (
                <div key={each.type} class="row">
                  <State tone={each.status === "True" ? "good" : "bad"}>{each.type}</State>
                  <span class="muted">{each.message}</span>
                </div>
              ))}
              <Code
                readOnly
                label={`Settings of ${metadata.name}`}
                language="yaml"
                text={dump(spec ?? {}, { noRefs: true })}
              />
              <p class="muted">
                Change it with{" "}
                <code>
                  kubectl edit serverless {metadata.name} -n {metadata.namespace}
                </code>
                .
              </p>
            </div>
          </section>
        ))}
      </div>
    </Frame>
  );
}
