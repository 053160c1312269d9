import { Optional } from "@marcbachmann/cel-js";
import { labelKeyProblems, labelValueProblems } from "@spry/kube";
import { nameProblems } from "../../resources/metadata.ts";
import { hasFormat } from "../validate.ts";
import { CelNamespace, type Library } from "./library.ts";

/** A format by name; a text's problems under it, none when it fits (`library/format.go`). */
class CelFormat {
  readonly problems: (text: string) => string[];
  constructor(problems: (text: string) => string[]) {
    this.problems = problems;
  }
}

class FormatNames extends CelNamespace {}

const prefix = (text: string) => text.replace(/-$/, "a");
const fits = (format: string, problem: string) => (text: string) =>
  hasFormat(text, format) ? [] : [problem];

const formats: Record<string, (text: string) => string[]> = {
  dns1123Label: (text) => nameProblems(text, "label"),
  dns1123Subdomain: (text) => nameProblems(text, "subdomain"),
  dns1035Label: (text) => nameProblems(text, "service"),
  qualifiedName: labelKeyProblems,
  dns1123LabelPrefix: (text) => nameProblems(prefix(text), "label"),
  dns1123SubdomainPrefix: (text) => nameProblems(prefix(text), "subdomain"),
  dns1035LabelPrefix: (text) => nameProblems(prefix(text), "service"),
  labelValue: labelValueProblems,
  uri: (text) => (URL.canParse(text) || text.startsWith("/") ? [] : ["invalid URI for request"]),
  uuid: fits("uuid", "does not match the UUID format"),
  byte: fits("byte", "invalid base64"),
  date: fits("date", "invalid date"),
  datetime: fits("date-time", "invalid datetime"),
};

export const format: Library = {
  types: { "kubernetes.NamedFormat": CelFormat, "kubernetes.FormatNames": FormatNames },
  constants: { format: { type: "kubernetes.FormatNames", value: new FormatNames() } },
  functions: [
    ...Object.entries(formats).map(([name, problems]): [string, () => CelFormat] => [
      `kubernetes.FormatNames.${name}(): kubernetes.NamedFormat`,
      () => new CelFormat(problems),
    ]),
    [
      "kubernetes.FormatNames.named(string): optional<kubernetes.NamedFormat>",
      (_: FormatNames, name: string) => {
        const problems = Object.hasOwn(formats, name) ? formats[name] : undefined;
        return problems ? Optional.of(new CelFormat(problems)) : Optional.none();
      },
    ],
    [
      "kubernetes.NamedFormat.validate(string): optional<list<string>>",
      (named: CelFormat, text: string) => {
        const problems = named.problems(text);
        return problems.length > 0 ? Optional.of(problems) : Optional.none();
      },
    ],
  ],
};
