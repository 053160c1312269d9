import { useEffect, useState } from "preact/hooks";
import {
  defaultRuntime,
  findRuntime,
  functions,
  type FunctionSpec,
  validateFunction,
} from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { messageOf } from "@spry/kube/browser";
import { client } from "../api/client.ts";
import { navigate, paths, query } from "../router.ts";
import {
  fromTemplate,
  keepNew,
  type NewFunction,
  newFunction,
  templateId,
} from "../state/new-function.ts";
import { may } from "../state/rights.ts";
import { readYaml, yamlOf } from "../state/yaml.ts";
import { Field, Problem } from "../ui/basics.tsx";
import { Code, languageOf } from "../ui/code.tsx";
import { Frame } from "../ui/frame.tsx";
import { NamespaceChoice } from "../ui/namespace-choice.tsx";
import { EnvFields } from "./form/env-fields.tsx";
import { problemAt } from "./form/form.ts";
import { emptyRepository, GitFields } from "./form/git-fields.tsx";
import { RuntimeField } from "./form/runtime-field.tsx";
import { ScaleFields } from "./form/scale-fields.tsx";

const gitTemplate = "git";

/** A Function of one's own: choose what it is like, name it, change the code, create it. */
export function CreateView() {
  const [templates, setTemplates] = useState<readonly Template[]>([]);
  const [isYaml, setYaml] = useState(newFunction.value?.yaml !== undefined);
  const [failure, setFailure] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [wasTried, setTried] = useState(false);
  useEffect(() => {
    const load = async () => setTemplates((await import("@spry/function/templates")).templates);
    void load();
  }, []);
  const [first] = templates;
  useEffect(() => {
    if (!newFunction.value && first) keepNew(beginning(first));
  }, [first]);
  const made = newFunction.value;
  if (!made) return <Frame title="Create a Function">{null}</Frame>;
  const { name, namespace, desired } = made;
  const change = (part: Partial<NewFunction>) => {
    const { yaml: _yaml, ...rest } = made;
    keepNew({ ...rest, ...part });
  };
  const setSpec = (spec: FunctionSpec) => change({ desired: { ...desired, spec } });
  const problems = validateFunction({ metadata: { name, namespace }, spec: desired.spec });
  const nameProblem =
    name === "" ? "a name is required" : shortName(problemAt(problems, "metadata.name"));
  const create = async () => {
    setTried(true);
    if (name === "" || problems.length > 0 || made.yaml !== undefined) return;
    setBusy(true);
    setFailure("");
    try {
      await client.create(functions, {
        metadata: { namespace, name, ...desired.metadata },
        spec: desired.spec,
      });
      keepNew(undefined);
      navigate(paths.fn(namespace, name));
    } catch (error) {
      setFailure(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  const mayCreate = may(namespace, "create", "functions");
  return (
    <Frame title="Create a Function">
      <form
        class="stack loose"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <div class="row between wrap">
          <p class="muted">
            Choose a beginning, name it, and change the code. All of it can be changed later.
          </p>
          <button
            type="button"
            class="small"
            aria-pressed={isYaml}
            onClick={() => setYaml(!isYaml)}
          >
            {isYaml ? "Form" : "YAML"}
          </button>
        </div>
        {isYaml ? (
          <YamlForm made={made} change={change} />
        ) : (
          <>
            <Templates templates={templates} made={made} change={change} />
            <div class="two">
              <Field
                label="Name"
                hint="part of its URL: small letters, digits and -"
                error={wasTried || name !== "" ? nameProblem : undefined}
              >
                {(ids) => (
                  <input
                    {...ids}
                    class="mono"
                    autocomplete="off"
                    value={name}
                    onInput={({ currentTarget }) => change({ name: currentTarget.value })}
                  />
                )}
              </Field>
              <Field label="Namespace">
                {({ id }) => (
                  <NamespaceChoice
                    id={id}
                    value={namespace}
                    onChange={(chosen) => change({ namespace: chosen ?? "default" })}
                  />
                )}
              </Field>
            </div>
            <Source made={made} setSpec={setSpec} problems={problems} />
            <details class="panel">
              <summary class="head">
                <h2>Variables, size and scale</h2>
              </summary>
              <div class="body stack loose">
                <EnvFields
                  namespace={namespace}
                  spec={desired.spec}
                  onChange={setSpec}
                  problems={problems}
                  readOnly={false}
                />
                <ScaleFields
                  namespace={namespace}
                  spec={desired.spec}
                  onChange={setSpec}
                  problems={problems}
                  readOnly={false}
                />
              </div>
            </details>
          </>
        )}
        {failure && <Problem title="The Function was not created" text={failure} />}
        {wasTried && problems.length > 0 && (
          <Problem
            tone="warn"
            title="This would be refused"
            text={problems.map(({ message }) => message).join("\n")}
          />
        )}
        <div class="savebar">
          <span class="grow muted">
            {mayCreate
              ? "It is built and started at once."
              : `You may not create Functions in namespace ${namespace}.`}
          </span>
          <button type="button" onClick={() => (first ? keepNew(beginning(first)) : undefined)}>
            Start over
          </button>
          <button type="submit" class="primary" disabled={isBusy || !mayCreate}>
            Create
          </button>
        </div>
      </form>
    </Frame>
  );
}

function beginning(template: Template): NewFunction {
  return {
    name: "",
    namespace: query.value.get("ns") ?? "default",
    template: templateId(template),
    desired: { metadata: { labels: {}, annotations: {} }, spec: fromTemplate(template, "") },
  };
}

/** The contract's message is long, and names the path again. */
const shortName = (problem: string | undefined): string | undefined =>
  problem === undefined
    ? undefined
    : "use at most 63 small letters, digits and -, begin with a letter, and end with a letter or digit";

interface PartProps {
  made: NewFunction;
  change: (part: Partial<NewFunction>) => void;
}

function Templates({ templates, made, change }: PartProps & { templates: readonly Template[] }) {
  const { desired, name } = made;
  const choose = (id: string, spec: FunctionSpec) =>
    change({ template: id, desired: { ...desired, spec } });
  return (
    <div class="cards" role="radiogroup" aria-label="Template">
      {templates.map((template) => {
        const id = templateId(template);
        return (
          <button
            key={id}
            type="button"
            role="radio"
            aria-checked={made.template === id}
            class="card"
            onClick={() => choose(id, fromTemplate(template, name, desired.spec.runtime))}
          >
            <strong>
              {template.language === "nodejs" ? titleOf(template) : `${titleOf(template)} (Python)`}
            </strong>
            <span class="muted">{template.description.replace(" (default)", "")}</span>
          </button>
        );
      })}
      <button
        type="button"
        role="radio"
        aria-checked={made.template === gitTemplate}
        class="card"
        onClick={() =>
          choose(gitTemplate, {
            runtime: desired.spec.runtime ?? defaultRuntime,
            source: { gitRepository: emptyRepository },
          })
        }
      >
        <strong>Git repository</strong>
        <span class="muted">The source is in Git: each push is built</span>
      </button>
    </div>
  );
}

const titles: Record<string, string> = {
  http: "HTTP",
  js: "HTTP, JavaScript",
  hono: "Hono",
  express: "Express",
  fastapi: "FastAPI",
  cloudevent: "CloudEvent",
  cron: "Schedule",
};

const titleOf = ({ name }: Template): string => titles[name] ?? name;

function Source({
  made,
  setSpec,
  problems,
}: {
  made: NewFunction;
  setSpec: (spec: FunctionSpec) => void;
  problems: ReturnType<typeof validateFunction>;
}) {
  const { namespace, desired } = made;
  const { spec } = desired;
  const { inline, gitRepository } = spec.source;
  const runtime = spec.runtime ?? defaultRuntime;
  const form = { namespace, spec, onChange: setSpec, problems, readOnly: false };
  const { handlerFile = "handler.js", dependencyFile = "package.json" } =
    findRuntime(runtime) ?? {};
  const set = (part: Partial<NonNullable<typeof inline>>) =>
    setSpec({ ...spec, source: { inline: { source: "", ...inline, ...part } } });
  return (
    <>
      <RuntimeField {...form} />
      {gitRepository && <GitFields {...form} />}
      {inline && (
        <>
          <div class="stack tight">
            <h2>{handlerFile}</h2>
            <Code
              key={made.template}
              tall
              label="Source"
              language={languageOf(runtime, inline.source)}
              text={inline.source}
              onChange={(source) => set({ source })}
            />
          </div>
          <div class="stack tight">
            <h2>{dependencyFile}</h2>
            <Code
              key={made.template}
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

function YamlForm({ made, change }: PartProps) {
  const { name, namespace, desired } = made;
  const [typed, setTyped] = useState<string>();
  const text = made.yaml ?? typed ?? yamlOf({ name, namespace }, desired);
  return (
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
      problems={(current) => {
        const read = readYaml(current);
        return "problem" in read ? [{ line: read.line, message: read.problem }] : [];
      }}
    />
  );
}
