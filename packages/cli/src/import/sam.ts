/** A template of AWS SAM or CloudFormation: its functions. */
import path from "node:path";
import { UserError } from "../user-error.ts";
import { type Document, recordIn, textIn } from "./aws-yaml.ts";
import { type Imported } from "./imported.ts";
import { lambdaConfig } from "./lambda-function.ts";

const kinds = ["AWS::Serverless::Function", "AWS::Lambda::Function"];
const httpKinds = ["Api", "HttpApi"];

export function isTemplate(document: Document): boolean {
  return Object.values(recordIn(document, "Resources")).some(isFunction);
}

const isFunction = (resource: unknown) => kinds.includes(textIn(resource, "Type") ?? "");

export function ofTemplate(document: Document, file: string, directory: string): Imported[] {
  const globals = recordIn(recordIn(document, "Globals"), "Function");
  const resources = Object.entries(recordIn(document, "Resources"));
  const others = resources.filter(([, each]) => !isFunction(each)).map(([, each]) => each);
  const created = [...new Set(others.map((each) => textIn(each, "Type") ?? ""))];
  return resources
    .filter(([, resource]) => isFunction(resource))
    .map(([name, resource], index) => {
      const properties = { ...globals, ...recordIn(resource, "Properties") };
      const handler = textIn(properties, "Handler");
      const code = textIn(properties, "CodeUri") ?? textIn(properties, "Code") ?? ".";
      if (handler === undefined || code.startsWith("s3:"))
        throw new UserError(
          `${file} has no code and handler for ${name}: images and archives of others cannot become Functions`,
          "remove that function from a copy of the file, and import the copy",
        );
      const events = Object.values(recordIn(properties, "Events"));
      const remarks =
        index === 0 && created.length > 0
          ? [`${created.join(", ")} are not created: what the code uses of AWS has to exist`]
          : [];
      if (properties["Layers"] !== undefined)
        remarks.push("layers are not used: declare what they have as dependencies");
      const { config, remarks: all } = lambdaConfig({
        name,
        handler,
        runtime: textIn(properties, "Runtime"),
        region: undefined,
        environment: {
          ...recordIn(recordIn(globals, "Environment"), "Variables"),
          ...recordIn(recordIn(properties, "Environment"), "Variables"),
        },
        memory: textIn(properties, "MemorySize"),
        timeout: textIn(properties, "Timeout"),
        schedules: events.flatMap(schedulesIn),
        events: events
          .map((event) => textIn(event, "Type") ?? "")
          .filter((kind) => !httpKinds.includes(kind) && !kind.startsWith("Schedule")),
        remarks,
      });
      return { directory: path.resolve(directory, code), config, remarks: all };
    });
}

function schedulesIn(event: unknown): string[] {
  if (!(textIn(event, "Type") ?? "").startsWith("Schedule")) return [];
  const properties = recordIn(event, "Properties");
  return [textIn(properties, "Schedule") ?? textIn(properties, "ScheduleExpression") ?? "?"];
}
