/** A Function that is being created: kept in the tab's session storage until it has been created. */
import { signal } from "@preact/signals";
import { defaultRuntime, findRuntime } from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { type Desired } from "./changes.ts";

export interface NewFunction {
  name: string;
  namespace: string;
  /** Name and language of the template that the source is from. */
  template: string;
  desired: Desired;
  /** The YAML as typed, while it cannot be read. */
  yaml?: string;
}

const storageKey = "spry.new";

export const newFunction = signal<NewFunction | undefined>(stored());

export function keepNew(value: NewFunction | undefined): void {
  newFunction.value = value;
  if (value) sessionStorage.setItem(storageKey, JSON.stringify(value));
  else sessionStorage.removeItem(storageKey);
}

function stored(): NewFunction | undefined {
  try {
    return (
      (JSON.parse(sessionStorage.getItem(storageKey) ?? "null") as NewFunction | null) ?? undefined
    );
  } catch {
    return undefined;
  }
}

export const templateId = ({ name, language }: Pick<Template, "name" | "language">): string =>
  `${language}/${name}`;

/** A template as an inline source. */
export function fromTemplate(template: Template, name: string, runtime?: string): Desired["spec"] {
  const { language, files, dependencies, requirements, schedules } = template;
  const chosen =
    runtime !== undefined && findRuntime(runtime)?.language === language
      ? runtime
      : language === "nodejs"
        ? defaultRuntime
        : "python312";
  const handler = Object.entries(files).find(([file]) => /^handler\.\w+$/.test(file))?.[1] ?? "";
  const packages =
    language === "nodejs"
      ? dependencies && `${JSON.stringify({ type: "module", dependencies }, null, 2)}\n`
      : requirements?.length && `${requirements.join("\n")}\n`;
  return {
    runtime: chosen,
    source: {
      inline: {
        source: handler.replaceAll("{{name}}", name || "function"),
        ...(packages ? { dependencies: packages } : {}),
      },
    },
    ...(schedules && { schedules }),
  };
}
