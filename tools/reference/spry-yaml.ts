/** docs/spry-yaml.md, from the JSON schema that editors use. */
import { configSchema } from "../../packages/cli/src/project/schema.ts";
import { code, generatedFrom, item, paragraph } from "./markdown.ts";

const { functions } = configSchema.properties;

interface Field {
  type?: string | readonly string[];
  enum?: readonly unknown[];
  description?: string;
  properties?: Record<string, Field>;
  additionalProperties?: Field | boolean;
  items?: Field;
  anyOf?: readonly Field[];
  required?: readonly string[];
}

const example = `name: shop
runtime: nodejs24
env:
  GREETING: Hello
  PASSWORD: { secret: shop-db, key: password }
scale: { min: 1, max: 5 }
profile: M
`;

const severalExample = `runtime: nodejs24
env:
  LOG_LEVEL: info
functions:
  orders: # in the directory orders
    scale: { max: 5 }
  mail:
    directory: workers
    handler: mail.ts
  reports:
    directory: workers
    handler: reports.ts
    schedules:
      - { name: nightly, cron: "0 3 * * *" }
`;

export function spryYaml(): string {
  return `${[
    generatedFrom("the schema (packages/cli/src/project/schema.ts)"),
    "# spry.yaml",
    paragraph(
      "What a directory says about the Function that it is. The file and every key are optional. `spry init` writes its JSON schema " +
        "to `.vscode/spry.schema.json`, with which editors complete and check it.",
    ),
    `\`\`\`yaml\n${example}\`\`\``,
    "## Keys",
    fieldsOf(configSchema).join("\n"),
    "## Several Functions",
    paragraph(
      "`spry deploy` deploys all of them, at most four at a time, and `spry dev` runs them all; `--function NAME` chooses. The directory of one of them, " +
        "named alone, is that Function, with the same settings: it has no `spry.yaml` of its own.",
    ),
    `\`\`\`yaml\n${severalExample}\`\`\``,
    fieldsOf({
      properties: { directory: functions.additionalProperties.properties.directory },
    }).join("\n"),
  ].join("\n\n")}\n`;
}

function fieldsOf(field: Field, depth = 0): string[] {
  return Object.entries(field.properties ?? {}).flatMap(([name, each]) => [
    item(code(name), sentence(each, field.required?.includes(name) ?? false), depth),
    ...fieldsOf(each.items ?? each, depth + 1),
    ...valuesOf(each, depth + 1),
  ]);
}

/** Of a map: what a value can be. */
function valuesOf({ additionalProperties }: Field, depth: number): string[] {
  if (typeof additionalProperties !== "object") return [];
  return (additionalProperties.anyOf ?? [])
    .filter(({ properties }) => properties)
    .map((each) => {
      const keys = Object.keys(each.properties ?? {}).map((key) => `${key}: …`);
      return item(code(`{ ${keys.join(", ")} }`), each.description ?? "", depth);
    });
}

function sentence({ enum: values, description = "" }: Field, isRequired: boolean): string {
  const choices = values ? ` One of ${values.map((each) => code(String(each))).join(", ")}.` : "";
  return `${isRequired ? "required. " : ""}${description}${choices}`;
}
