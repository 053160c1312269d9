import { defaultRuntime, type FunctionSpec } from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { deepEqual } from "@spry/kube/browser";
import { toast } from "../../ui/toasts.tsx";
import { fromTemplate, keepNew, templateId } from "../../state/new-function.ts";
import { emptyRepository } from "../form/git-fields.tsx";
import { type NewFunctionProps } from "./new-function-props.ts";

const gitTemplate = "git";

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

/** What the Function begins with: a template, or a Git repository. */
export function TemplateCards({
  templates,
  made,
  change,
}: NewFunctionProps & { templates: readonly Template[] }) {
  const { desired, name } = made;
  const choose = (id: string, spec: FunctionSpec) => {
    const sources = templates.map((each) => fromTemplate(each, "").source);
    const isTyped =
      !deepEqual(made.origin ?? {}, desired.spec.source) &&
      !sources.some((each) => deepEqual(each, desired.spec.source)) &&
      !deepEqual(desired.spec.source, { gitRepository: emptyRepository });
    change({ template: id, origin: spec.source, desired: { ...desired, spec } });
    if (!isTyped) return;
    toast("idle", "The code that you had typed was replaced by the template’s.", {
      label: "Undo",
      run: () => keepNew(made),
    });
  };
  return (
    <div class="cards" role="radiogroup" aria-label="Template" onKeyDown={moveChoice}>
      {templates.map((template) => {
        const id = templateId(template);
        return (
          <button
            key={id}
            type="button"
            role="radio"
            aria-checked={made.template === id}
            tabIndex={made.template === id ? 0 : -1}
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
        tabIndex={made.template === gitTemplate ? 0 : -1}
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

const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** Arrows choose the next one, as in any group of radio buttons, of which Tab reaches only the chosen one. */
function moveChoice(event: KeyboardEvent): void {
  const step = steps[event.key];
  const group = event.currentTarget as HTMLElement;
  const all = [...group.querySelectorAll<HTMLElement>('[role="radio"]')];
  const at = all.indexOf(document.activeElement as HTMLElement);
  if (step === undefined || at < 0) return;
  event.preventDefault();
  const next = all[(at + step + all.length) % all.length];
  next?.focus();
  next?.click();
}
