import { useEffect, useRef, useState } from "preact/hooks";
import { functions, validateFunction } from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { isNotFound, messageOf, resources } from "@spry/kube/browser";
import { client } from "../../api/client.ts";
import { navigate, paths, query } from "../../router.ts";
import {
  fromTemplate,
  keepNew,
  type NewFunction,
  newFunction,
  templateId,
} from "../../state/new-function.ts";
import { isRead } from "../../state/typed.ts";
import { may } from "../../state/rights.ts";
import { type WrongCode, wrongCodeIn } from "../../state/wrong-code.ts";
import { Problem } from "../../ui/basics.tsx";
import { Frame } from "../../ui/frame.tsx";
import { later, Unloaded } from "../../ui/later.tsx";
import { useApplyKey } from "../../ui/use-apply-key.ts";
import { toast } from "../../ui/toasts.tsx";
import { WrongCodeDialog } from "../../ui/wrong-code-dialog.tsx";
import { EnvFields } from "../form/env-fields.tsx";
import { type FormProps } from "../form/form.ts";
import { ScaleFields } from "../form/scale-fields.tsx";
import { NewElsewhere } from "./new-elsewhere.tsx";
import { NameFields } from "./name-fields.tsx";
import { SourceFields } from "./source-fields.tsx";
import { TemplateCards } from "./template-cards.tsx";

const YamlForm = later(async () => (await import("./yaml-form.tsx")).YamlForm);

/** Creates a Function: choose a template, name it, change the code. */
export function CreateView() {
  const [templates, setTemplates] = useState<readonly Template[]>([]);
  const [chosen, setYaml] = useState<boolean>();
  const isYaml = chosen ?? newFunction.value?.yaml !== undefined;
  const [failure, setFailure] = useState("");
  const [unloaded, setUnloaded] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<WrongCode>();
  /** The namespace does not exist. */
  const [missing, setMissing] = useState(false);
  const [wasTried, setTried] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useApplyKey(button);
  useEffect(() => {
    const load = async () => setTemplates((await import("@spry/function/templates")).templates);
    void load().catch((error: unknown) => setUnloaded(messageOf(error)));
  }, []);
  const [first] = templates;
  useEffect(() => {
    if (!newFunction.value && first && isRead.value) keepNew(beginning(first));
  }, [first, isRead.value]);
  // The address says where: a draft without a name is not meant for another namespace.
  useEffect(() => {
    const asked = query.peek().get("ns");
    const { value } = newFunction;
    if (value?.name === "" && asked !== null && asked !== value.namespace)
      keepNew({ ...value, namespace: asked });
  }, [isRead.value]);
  const made = isRead.value ? newFunction.value : undefined;
  if (!made) {
    return <Frame title="Create a Function">{unloaded && <Unloaded text={unloaded} />}</Frame>;
  }
  const { name, namespace, desired } = made;
  const change = (part: Partial<NewFunction>) => {
    const { yaml: _yaml, ...rest } = made;
    keepNew({ ...rest, ...part });
  };
  const problems = validateFunction({ metadata: { name, namespace }, spec: desired.spec });
  const fields: FormProps = {
    namespace,
    spec: desired.spec,
    onChange: (spec) => change({ desired: { ...desired, spec } }),
    problems,
    readOnly: false,
  };
  const create = async (isSure = false) => {
    setTried(true);
    if (name === "" || problems.length > 0 || made.yaml !== undefined) {
      // The first field with a problem may be out of sight: the button is not.
      setTimeout(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
      return;
    }
    setBusy(true);
    setFailure("");
    setMissing(false);
    try {
      const found = isSure ? undefined : await wrongCodeIn(desired.spec).catch(() => undefined);
      if (found) return setWrong(found);
      await client.create(functions, {
        metadata: { namespace, name, ...desired.metadata },
        spec: desired.spec,
      });
      keepNew(undefined);
      navigate(paths.fn(namespace, name));
      toast("good", `${name} is created. It is built and started now, which takes some seconds.`, {
        label: "Try it",
        run: () => navigate(paths.fn(namespace, name, "try")),
      });
    } catch (error) {
      setFailure(messageOf(error));
      setMissing(isNotFound(error));
    } finally {
      setBusy(false);
    }
  };
  const createNamespace = async () => {
    try {
      await client.create(resources.namespaces, { metadata: { name: namespace } });
    } catch (error) {
      return setFailure(messageOf(error));
    }
    await create(true);
  };
  const mayCreate = may(namespace, "create", "functions");
  return (
    <Frame title="Create a Function">
      <form
        ref={form}
        class="stack loose"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <div class="row between wrap">
          <p class="muted">
            Choose a template, name the Function, and change the code. You can change everything
            later.
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
        <NewElsewhere />
        {isYaml ? (
          <YamlForm made={made} change={change} />
        ) : (
          <>
            <TemplateCards templates={templates} made={made} change={change} />
            <NameFields made={made} change={change} problems={problems} wasTried={wasTried} />
            <SourceFields {...fields} template={made.template} />
            <details class="panel">
              <summary class="head">
                <h2>Variables, size and scale</h2>
              </summary>
              <div class="body stack loose">
                <EnvFields {...fields} />
                <ScaleFields {...fields} />
              </div>
            </details>
          </>
        )}
        {failure && (
          <div ref={(shown) => shown?.scrollIntoView({ block: "nearest" })}>
            <Problem title="The Function was not created" text={failure}>
              {missing && may(namespace, "create", "namespaces", "") && (
                <p>
                  <button type="button" onClick={() => void createNamespace()}>
                    Create namespace {namespace}, and the Function
                  </button>
                </p>
              )}
            </Problem>
          </div>
        )}
        {wasTried && problems.length > 0 && (
          <Problem
            tone="warn"
            title="This would be refused"
            text={problems.map(({ message }) => message).join("\n")}
          />
        )}
        {wrong && (
          <WrongCodeDialog
            wrong={wrong}
            verb="Create"
            onAction={() => create(true)}
            onClose={() => setWrong(undefined)}
          />
        )}
        <div class="savebar">
          <span class="grow muted">
            {mayCreate
              ? "It is built and started at once."
              : `You may not create Functions in namespace ${namespace}.`}
          </span>
          <button type="button" onClick={() => first && replaceNew(beginning(first))}>
            Start over
          </button>
          <button ref={button} type="submit" class="primary" disabled={isBusy || !mayCreate}>
            Create
          </button>
        </div>
      </form>
    </Frame>
  );
}

/** Undo brings back what was typed. */
function replaceNew(next: NewFunction): void {
  const before = newFunction.value;
  keepNew(next);
  toast("idle", "What you had typed was replaced.", { label: "Undo", run: () => keepNew(before) });
}

function beginning(template: Template): NewFunction {
  const spec = fromTemplate(template, "");
  return {
    name: "",
    namespace: query.value.get("ns") ?? "default",
    template: templateId(template),
    origin: spec.source,
    desired: { metadata: { labels: {}, annotations: {} }, spec },
  };
}
