/** A Function that is being created: kept until it has been created (state/typed.ts). */
import { defaultRuntime, findRuntime } from "@spry/function/browser";
import type { Template } from "@spry/function/templates";
import { specShape } from "../api/object-shapes.ts";
import { deepEqual } from "@spry/kube/browser";
import { type Desired, desiredShape } from "./changes.ts";
import { declareTyped, keepTyped, typedAs } from "./typed.ts";

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

/** Under which it is typed. */
export const newName = "new";
declareTyped(newName, {
  "name!": "text",
  "namespace!": "text",
  "template!": "text",
  origin: specShape["source!"],
  "desired!": desiredShape,
  yaml: "text",
});

/** Read in a view, it is shown as it changes. */
export const newFunction = {
  get value(): NewFunction | undefined {
    return typedAs<NewFunction>(newName);
  },
};

export const keepNew = (value: NewFunction | undefined): void => keepTyped(newName, value);

/** Whether the user has typed anything. */
export const isBegun = ({ name, yaml, origin, desired }: NewFunction): boolean =>
  name !== "" || yaml !== undefined || !deepEqual(origin ?? {}, desired.spec.source);

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
