/** A Function that is being created: kept in the tab's session storage until it has been created. */
import { signal } from "@preact/signals";
import { defaultRuntime, findRuntime } from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { specShape } from "../api/object-shapes.ts";
import { type Desired, desiredShape } from "./changes.ts";
import { store, stored } from "./tab-storage.ts";

export interface NewFunction {
  name: string;
  namespace: string;
  /** Name and language of the template that the source is from. */
  template: string;
  /** The source as the template had it. */
  origin?: Desired["spec"]["source"];
  desired: Desired;
  /** The YAML as typed, while it cannot be read. */
  yaml?: string;
}

const storageKey = "new";
const newShape = {
  "name!": "text",
  "namespace!": "text",
  "template!": "text",
  origin: specShape["source!"],
  "desired!": desiredShape,
  yaml: "text",
} as const;

export const newFunction = signal(stored<NewFunction>(storageKey, newShape));

export function keepNew(value: NewFunction | undefined): void {
  newFunction.value = value;
  store(storageKey, value);
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
